// The machine model that turns operations and bytes into time: given by flags, or measured here with the
// compute module's matrix product and a copy of memory.
#pragma once

#include <string>

#include "app/node/command.h"
#include "core/partition/graph/machine_model.h"

namespace neuroshard::app {

struct MachineFlags {
  std::string flops, memory_bandwidth;  // empty: measured
};

struct Machine {
  partition::MachineModel model;
  std::string source;  // for people: "given", or what was measured
};

// Takes about two seconds when it measures. NotFound when the product must be measured and there is no
// compute module: the message names the flags.
Expected<Machine> partition_machine(const MachineFlags& flags, CommandContext& context);

}  // namespace neuroshard::app
