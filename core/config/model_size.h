// The size that the model of a data directory's network has now, by its index among the sizes of the profile: the file D/size has
// it. Without the file it is the first one.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/config/data_directory.h"

namespace neuroshard::config {

// Of the directory at this path.  Errors: Corrupt (no such size; the message says what to do), those of reading.
Expected<std::uint64_t> read_size(const std::string& path, storage::FileEnv& files,
                                  const ConsensusPart& consensus);
// Atomic. The next open of the directory takes it; this one keeps its own.  Errors: InvalidArgument (the profile has no such
// size), those of writing.
Expected<void> keep_size(const std::string& path, storage::FileEnv& files, const ConsensusPart& consensus,
                         std::uint64_t size);

}  // namespace neuroshard::config
