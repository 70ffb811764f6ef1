// The port for peers that was taken in place of one that is not free. It is kept in the data directory, so
// that the node is found at the same place after a restart and what others remember of it stays true.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

// D/peers.port: one line, "<wanted> <chosen>", both decimal; wanted 0 = any free one.
std::string kept_port_path(const std::string& data_directory);

// The port that stands in for `wanted`, if there is one. A damaged file is none, with a warning.
std::optional<std::uint16_t> read_kept_port(storage::FileEnv& files, const std::string& data_directory,
                                            std::uint16_t wanted, Logger& logger);
Expected<void> keep_port(storage::FileEnv& files, const std::string& data_directory, std::uint16_t wanted,
                         std::uint16_t chosen);

}  // namespace neuroshard::app
