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
// Errors: the file can't be read or written, or holds no key; the message names it.
Expected<KeyFromFile> read_or_make_key(CommandContext& context, const std::string& path);

}  // namespace neuroshard::app
