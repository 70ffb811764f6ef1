// Mains or battery. Linux: /sys/class/power_supply; elsewhere unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard::platform {

struct PowerSupply {
  bool on_battery = false;  // false also for a machine without a battery
  std::optional<std::uint32_t>
      charge_percent;  // of all batteries of the machine; none: no battery, or unknown
};
// Unknown when the system does not tell. Batteries of mice and headsets do not count; an uninterruptible
// power supply does.  `root` stands for "/", for tests.  May take a while (firmware is asked): not on the
// core thread.
std::optional<PowerSupply> power_supply(const std::string& root = "/");

}  // namespace neuroshard::platform
