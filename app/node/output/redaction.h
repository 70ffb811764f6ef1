// The redactors of this program: what may not get into its log, and what may not leave the computer.
#pragma once

#include <string>

#include "core/base/redactor.h"

namespace neuroshard::app {

// Secrets only: who reads the log files is their owner.
Redactor log_redactor();
// Secrets, among them the cookie of a core that runs on the directory, and what is personal.
Redactor sharing_redactor(const std::string& data_directory);

}  // namespace neuroshard::app
