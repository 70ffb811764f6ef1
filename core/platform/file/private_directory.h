// Files that only this user may see, in a folder that other users could have tampered with (a shared
// temporary directory): made with the right mode, and believed only with the right owner and mode.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/expected.h"

namespace neuroshard::platform {

// Makes `path` (mode 0700, with missing parents) or checks that it is a real directory of this user that
// nobody else may enter or change.  Denied: it is somebody else's, a link, or open to others; the message
// says what to do.
Expected<void> make_private_directory(const std::string& path);

// The content of a regular file of this user that nobody else may read or write; links are not followed.
// NotFound, Denied (owner or mode), Exhausted (longer than `limit`), Io.
Expected<std::string> read_private_file(const std::string& path, std::size_t limit);

}  // namespace neuroshard::platform
