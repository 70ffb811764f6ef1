// The person at the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/cancel.h"
#include "core/base/expected.h"

namespace neuroshard::platform {

enum class Stream { In, Out, Error };

bool is_terminal(Stream stream);
// Columns of the terminal behind standard error or output; `fallback` when neither is one.
int terminal_width(int fallback);

// Standard input to its end. Looks at `stop` while nothing comes, so that a person who types nothing can
// still end the program.  InvalidArgument: more than max_bytes. Cancelled. Io: it is closed or can't be read.
Expected<std::string> read_standard_input(std::size_t max_bytes, const CancelToken& stop);

// The next line of standard input without its end, or what comes before the end of the input. Reads no byte
// beyond. Looks at `stop` as above.  Errors: as above.
Expected<std::string> read_input_line(std::size_t max_bytes, const CancelToken& stop);

// Asks on the controlling terminal (also when standard input and output are redirected) and returns one line
// without its end. hidden: what is typed is not shown. The caller wipes the answer if it is a secret.
// Unavailable: there is no terminal. Cancelled: Ctrl-C or the end of input. InvalidArgument: longer than
// max_prompt_bytes.
Expected<std::string> prompt(std::string_view question, bool hidden);
inline constexpr std::size_t max_prompt_bytes = 4096;

// Writes on the controlling terminal, not on standard output: for words that must not end up in a file.
// Unavailable: there is none.
Expected<void> show_on_terminal(std::string_view text);

}  // namespace neuroshard::platform
