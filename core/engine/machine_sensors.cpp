#include "core/engine/machine_sensors.h"

#include <utility>

#include "core/platform/sensor/power_supply.h"
#include "core/platform/sensor/running_programs.h"
#include "core/platform/sensor/temperature.h"

namespace neuroshard::engine {
namespace {

class PlatformSensors final : public contribute::MachineSensors {
 public:
  PlatformSensors(storage::FileEnv& files, std::string directory, std::string root)
      : files_(files), directory_(std::move(directory)), root_(std::move(root)) {}

  contribute::MachineReadings read(const std::vector<std::string>& programs) override {
    contribute::MachineReadings readings;
    if (const auto supply = platform::power_supply(root_))
      readings.power = contribute::MachineReadings::Power{supply->on_battery, supply->charge_percent};
    if (auto temperature = platform::processor_temperature(root_)) {
      readings.celsius = temperature->celsius;
      readings.thermometer = std::move(temperature->sensor);
    }
    if (const auto free = files_.free_bytes(directory_); free.ok()) readings.free_bytes = *free;
    // Last: another process that waits for a dead disk can hold this up until `files_` is gone.
    if (!programs.empty()) readings.running = platform::running_programs(programs, root_);
    return readings;
  }

 private:
  storage::FileEnv& files_;
  const std::string directory_;
  const std::string root_;
};

}  // namespace

std::unique_ptr<contribute::MachineSensors> make_machine_sensors(storage::FileEnv& files,
                                                                 std::string directory, std::string root) {
  return std::make_unique<PlatformSensors>(files, std::move(directory), std::move(root));
}

}  // namespace neuroshard::engine
