// How hot the processor is. Linux: /sys/class/hwmon, else /sys/class/thermal; elsewhere unknown, and also in
// most virtual machines.
#pragma once

#include <optional>
#include <string>

namespace neuroshard::platform {

struct Temperature {
  double celsius = 0;
  std::string sensor;  // "coretemp: Package id 0"
};
// The hottest of the processor's sensors. `root` stands for "/", for tests. Not on the core thread.
std::optional<Temperature> processor_temperature(const std::string& root = "/");

}  // namespace neuroshard::platform
