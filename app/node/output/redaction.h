// The redactors of this program: one for its log, one for text that leaves the computer.
#pragma once

#include <string>

#include "core/base/redactor.h"

namespace neuroshard::app {

// Removes secrets only: the log files belong to the user.
Redactor log_redactor();
// Removes secrets, the cookie of a running core among them, and personal data.
Redactor sharing_redactor(const std::string& data_directory);

}  // namespace neuroshard::app
