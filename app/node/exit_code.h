// Exit codes of neuroshardd: those of sysexits.h where one fits. Scripts rely on them; never renumber.
#pragma once

#include <string>

#include "core/base/error.h"

namespace neuroshard::app {

enum class ExitCode : int {
  Ok = 0,
  Failure = 1,         // the command ran and its answer is "no": a failed verification or check
  Usage = 64,          // wrong command line, flag or setting
  CorruptData = 65,    // a file or a received piece of data is damaged or unexpected
  InputNotFound = 66,  // a named file, folder, checkpoint or profile does not exist
  Unavailable = 69,    // a server, a device or a feature is not available
  Internal = 70,       // a bug in neuroshardd
  CantCreate = 73,     // the output already exists or can't be created
  InputOutput = 74,    // reading or writing failed; disk or memory is full
  Busy = 75,           // the data directory is in use by another process
  Denied = 77,         // no permission, wrong passphrase
  Interrupted = 130,   // stopped by Ctrl-C or a signal before the end
};

// Maps an error to the exit code. No other code does.
ExitCode exit_code_of(ErrorCode code);

// The table at the end of --help.
std::string exit_code_table();

}  // namespace neuroshard::app
