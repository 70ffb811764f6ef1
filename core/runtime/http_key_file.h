// The file that holds the key of the local HTTP server: its first line, mode 0600.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::runtime {

// Replaces the file. Errors: those of the file.
Expected<std::string> make_http_key(const std::string& path, const RuntimeServices& services);
// Makes the file when it is missing. InvalidArgument: no usable key in it; else those of the file.
Expected<std::string> read_or_make_http_key(const std::string& path, const RuntimeServices& services);
// Whether there is a file, which then may be replaced or removed: it is empty, or one key that a node made and
// nothing else. Denied: it is a person's own key or something else, for example a wallet or another program's
// token that the setting names by mistake.
Expected<bool> has_made_http_key(const std::string& path, const RuntimeServices& services);

}  // namespace neuroshard::runtime
