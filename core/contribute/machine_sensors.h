// The machine's sensors behind one interface, so that tests put values of their own there.
#pragma once

#include <string>
#include <vector>

#include "core/contribute/rules.h"

namespace neuroshard::contribute {

class MachineSensors {
 public:
  virtual ~MachineSensors() = default;
  // Reads all of them; `programs` are the ones to search for. May take long: it reads firmware and disks.
  // Threads: one at a time, never the core's.
  virtual MachineReadings read(const std::vector<std::string>& programs) = 0;
};

}  // namespace neuroshard::contribute
