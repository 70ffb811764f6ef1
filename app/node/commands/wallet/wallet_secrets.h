// Input and output of the wallet commands' secrets: files that a flag or the environment names, the terminal,
// standard input. Never the command line: other users of the machine can read that.
#pragma once

#include <string>
#include <string_view>

#include "app/node/command.h"
#include "core/base/expected.h"
#include "core/crypto/secret.h"

namespace neuroshard::app {

// Names a file with the passphrase; --passphrase-file wins.
inline constexpr const char* passphrase_file_variable = "NEUROSHARD_PASSPHRASE_FILE";
inline constexpr std::size_t max_secret_file_bytes = 64u << 10;

// True when a person can be asked: standard input is a terminal and --json was not given.
bool can_ask(const CommandContext& context);

// A file's bytes, or those of standard input for "-". Pipes are fine. Errors: NotFound, Denied, Io,
// InvalidArgument when it is larger than max_secret_file_bytes.
Expected<crypto::Secret> read_secret_file(const std::string& path);

// Hidden; `again` asks twice and wants the same answer. Unavailable when nobody can be asked.
Expected<crypto::Secret> ask_secret(const CommandContext& context, const std::string& question, bool again);

// A passphrase from the first of: the named file (one final line end is not part of it), the file that
// NEUROSHARD_PASSPHRASE_FILE names, the person. `what` says which passphrase, for the question and the
// errors.
Expected<crypto::Secret> get_passphrase(const CommandContext& context, const std::string& file,
                                        const std::string& what, bool again);
// Whether get_passphrase would find one without asking.
bool passphrase_is_given(const std::string& file);

// Writes to the terminal when there is one, else to standard error; never to standard output.
void show_secret(const CommandContext& context, std::string_view text);

// Asks for a few of the words, to check that the user has written them down. True when all are right.
bool check_words(CommandContext& context, std::string_view words);

}  // namespace neuroshard::app
