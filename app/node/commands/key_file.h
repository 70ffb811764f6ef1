// The key file that a command names: it is read, or made when it is missing.
#pragma once

#include <string>

#include "app/node/command.h"
#include "core/crypto/keys.h"

namespace neuroshard::app {

struct KeyFromFile {
  crypto::KeyPair key;
  bool made = false;
};
// Errors: the file can't be read or written, or holds no key, or nobody knows whether it is there; the message names
// it. A link to nothing is such an error: its volume may be missing for a moment.
Expected<KeyFromFile> read_or_make_key(CommandContext& context, const std::string& path);

}  // namespace neuroshard::app
