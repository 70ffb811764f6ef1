#include "core/platform/sensor/power_supply.h"

#include <algorithm>
#include <filesystem>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

using detail::parse_number;

// First line of an attribute; empty when it is missing.
std::string attribute(const std::filesystem::path& folder, const char* name) {
  std::string text = detail::read_small_file((folder / name).string());
  return text.substr(0, text.find('\n'));
}

// A battery's capacity, for the mean over several; 1 when it does not say.
double capacity_when_full(const std::filesystem::path& folder) {
  for (const char* name : {"energy_full", "charge_full"}) {
    if (const auto full = parse_number(attribute(folder, name)); full && *full > 0)
      return static_cast<double>(*full);
  }
  return 1;
}

struct Batteries {
  std::uint32_t count = 0;
  bool discharging = false;
  double full = 0, charged = 0;  // of those that tell their charge

  void add(const std::filesystem::path& folder) {
    ++count;
    if (attribute(folder, "status") == "Discharging") discharging = true;
    const auto percent = parse_number(attribute(folder, "capacity"));
    if (!percent || *percent > 100) return;
    const double size = capacity_when_full(folder);
    full += size;
    charged += size * static_cast<double>(*percent);
  }
};

}  // namespace

std::optional<PowerSupply> power_supply(const std::string& root) {
  std::error_code failed;
  std::filesystem::directory_iterator folder(root + "/sys/class/power_supply", failed);
  if (failed) return std::nullopt;
  Batteries batteries;
  std::uint32_t mains = 0, mains_online = 0;
  for (const auto& entry : folder) {
    const std::string type = attribute(entry.path(), "type");
    if (type == "Battery" || type == "UPS") {
      // "Device": of a mouse or a headset. "present" is 0 for an empty slot.
      if (attribute(entry.path(), "scope") == "Device" || attribute(entry.path(), "present") == "0") continue;
      batteries.add(entry.path());
    } else if (type == "Mains" || type == "USB") {
      ++mains;
      if (attribute(entry.path(), "online") == "1") ++mains_online;
    }
  }
  PowerSupply supply;
  if (batteries.count == 0) return supply;
  // A charger that is plugged in counts even where the battery gives its part under load.
  supply.on_battery = mains > 0 ? mains_online == 0 : batteries.discharging;
  if (batteries.full > 0)
    supply.charge_percent = static_cast<std::uint32_t>(batteries.charged / batteries.full + 0.5);
  return supply;
}

}  // namespace neuroshard::platform
