// A person's consent to something that can't be undone.
#pragma once

#include <string>

#include "core/base/expected.h"

namespace neuroshard::app {

// Asks on the terminal; the question ends with "[y/N] ". InvalidArgument: there is no terminal, and `what`, a verb
// with -ing, requires consent. Cancelled: declined.
Expected<void> ask_consent(const std::string& question, const std::string& what);

}  // namespace neuroshard::app
