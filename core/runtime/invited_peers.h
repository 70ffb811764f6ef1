// The peers of the invitation that a node followed, kept in its data directory. They let the second start
// find the network when the first one met no peer.
//
// Threads: any one at a time. Errors: reading has none; writing has those of the disk.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

// The peers that an invitation names beside the profile's own addresses: enough to find one that is up, few
// enough for a small QR code.
inline constexpr std::size_t invited_by_default = 3;

// D/peers.invited: one "[ID@]HOST:PORT" a line, config::max_invited_peers at most. Other lines are left out,
// with a warning.
std::vector<std::string> read_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                            Logger& logger);
Expected<void> keep_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                  const std::vector<std::string>& peers);

}  // namespace neuroshard::runtime
