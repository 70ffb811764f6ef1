#include "core/platform/sensor/temperature.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

// Drivers of processors' own sensors. A board's other sensors (disks, batteries, empty sockets) are none of
// our doing and often nonsense.
constexpr std::array<std::string_view, 6> processor_drivers = {"coretemp",    "k10temp",     "zenpower",
                                                               "cpu_thermal", "soc_thermal", "via_cputemp"};
// Offset by up to 27 °C on some processors, for the sake of their fans; Tdie is the same without it.
constexpr std::string_view offset_label = "Tctl";

std::string first_line(const std::filesystem::path& path) {
  std::string text = detail::read_small_file(path.string());
  return text.substr(0, text.find('\n'));
}

// Files hold thousandths of a degree; sensors that are not connected say 0, negative values or absurd ones.
std::optional<double> read_celsius(const std::filesystem::path& path) {
  const auto value = detail::parse_number(first_line(path));
  if (!value || *value == 0 || *value > 150'000) return std::nullopt;
  return static_cast<double>(*value) / 1000.0;
}

void keep_hotter(std::optional<Temperature>& hottest, Temperature found) {
  if (!hottest || found.celsius > hottest->celsius) hottest = std::move(found);
}

std::optional<Temperature> of_driver(const std::filesystem::path& folder, const std::string& driver) {
  std::optional<Temperature> hottest, offset;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.find("_input");
    if (file.rfind("temp", 0) != 0 || end == std::string::npos) continue;
    const auto celsius = read_celsius(entry.path());
    if (!celsius) continue;
    const std::string label = first_line(folder / (file.substr(0, end) + "_label"));
    Temperature found{*celsius, label.empty() ? driver : driver + ": " + label};
    keep_hotter(label == offset_label ? offset : hottest, std::move(found));
  }
  return hottest ? hottest : offset;
}

bool is_processor_zone(const std::string& type) {
  return type == "x86_pkg_temp" || type.rfind("cpu", 0) == 0 || type.rfind("soc", 0) == 0;
}

}  // namespace

std::optional<Temperature> processor_temperature(const std::string& root) {
  std::optional<Temperature> hottest;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/class/hwmon", failed)) {
    const std::string driver = first_line(entry.path() / "name");
    for (const std::string_view known : processor_drivers) {
      if (driver != known) continue;
      if (auto found = of_driver(entry.path(), driver)) keep_hotter(hottest, std::move(*found));
    }
  }
  if (hottest) return hottest;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/class/thermal", failed)) {
    const std::string type = first_line(entry.path() / "type");
    if (!is_processor_zone(type)) continue;
    if (const auto celsius = read_celsius(entry.path() / "temp")) keep_hotter(hottest, {*celsius, type});
  }
  return hottest;
}

}  // namespace neuroshard::platform
