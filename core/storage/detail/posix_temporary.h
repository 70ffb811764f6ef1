// Temporary files of the POSIX file environment. Private to core/storage.
#pragma once

#include <cstddef>
#include <string>

#include "core/storage/detail/posix_file.h"

namespace neuroshard::storage::detail {

// Locked (flock) as long as a copy of the descriptor is open: so that remove_leftovers() knows that its writer lives.
struct NewTemporary {
  std::string path;
  Descriptor fd;
};

// "target.tmp-" and 16 random hexadecimal digits. Errors as FileEnv's.
Expected<NewTemporary> create_temporary(const std::string& target, mode_t mode);

// As FileEnv::remove_leftovers().
std::size_t remove_leftovers(const std::string& folder, LeftoverScope scope);

}  // namespace neuroshard::storage::detail
