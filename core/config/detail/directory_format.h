// The file FORMAT of a data directory: which layout it has, and how an older one is brought forward.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/storage/file_env.h"

namespace neuroshard::config::detail {

// One step forward of the layout.
struct FormatMigration {
  std::uint32_t from = 0;  // to from + 1
  Expected<void> (*run)(storage::FileEnv& files, const std::string& directory) = nullptr;
};

// Reads FORMAT, or writes it into a directory that is empty or holds only names of ours. An older format is
// brought to `current` step by step; before the first step every file at the top of the directory is copied
// into "backup-format-<n>/". Interrupted, it repeats the step that was not completed, so a step must be
// repeatable. Errors: Unsupported (newer: nothing is touched), InvalidArgument (a folder with other things in
// it), Corrupt.
Expected<void> open_format(storage::FileEnv& files, const std::string& directory, std::uint32_t current,
                           Span<const FormatMigration> migrations);

}  // namespace neuroshard::config::detail
