// The sensors of this machine, from core/platform.
#pragma once

#include <memory>
#include <string>

#include "core/contribute/machine_sensors.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

// `directory`: where free space is measured. `root`: replaces "/" for the other sensors. `files` outlives it.
std::unique_ptr<contribute::MachineSensors> make_machine_sensors(storage::FileEnv& files,
                                                                 std::string directory,
                                                                 std::string root = "/");

}  // namespace neuroshard::engine
