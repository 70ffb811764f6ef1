// The port for peers that a node took because the wanted one was not free. It is kept in the data directory,
// so that peers find the node at the same port after a restart.
//
// Threads: any one at a time. Errors: reading has none; writing has those of the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

// D/peers.port: one line, "<wanted> <chosen>", both decimal; wanted 0 = any free one.
std::string kept_port_path(const std::string& data_directory);

// The port that was taken in place of `wanted`; nothing when there is none. A damaged file is ignored, with a
// warning.
std::optional<std::uint16_t> read_kept_port(storage::FileEnv& files, const std::string& data_directory,
                                            std::uint16_t wanted, Logger& logger);
// The port at which the node listened last, whatever it wanted; nothing when none was written.
std::optional<std::uint16_t> last_port(storage::FileEnv& files, const std::string& data_directory);
Expected<void> keep_port(storage::FileEnv& files, const std::string& data_directory, std::uint16_t wanted,
                         std::uint16_t chosen);

}  // namespace neuroshard::runtime
