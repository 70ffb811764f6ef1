// A log without secrets (redactor.h).
#pragma once

#include <memory>

#include "core/base/log.h"
#include "core/base/redactor.h"

namespace neuroshard {

// Passes each record on to `target`, which outlives it, with the message that the redactor makes of it. Threads: any.
std::unique_ptr<Logger> make_redacting_logger(Logger& target, Redactor redactor);

}  // namespace neuroshard
