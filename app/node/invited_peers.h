// The peers of the invitation that a node came with, kept in its data directory: without them, a node that
// met nobody at its first start would have nobody to begin with at its second.
#pragma once

#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

// D/peers.invited: one "[ID@]HOST:PORT" a line, 8 at most. Lines that are none are left out, with a warning.
std::vector<std::string> read_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                            Logger& logger);
Expected<void> keep_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                  const std::vector<std::string>& peers);

}  // namespace neuroshard::app
