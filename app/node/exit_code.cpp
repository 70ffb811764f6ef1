#include "app/node/exit_code.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace neuroshard::app {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return ExitCode::Usage;
    case ErrorCode::NotFound: return ExitCode::InputNotFound;
    case ErrorCode::AlreadyExists: return ExitCode::CantCreate;
    case ErrorCode::Corrupt: return ExitCode::CorruptData;
    case ErrorCode::Timeout:
    case ErrorCode::Unavailable:
    case ErrorCode::Unsupported: return ExitCode::Unavailable;
    case ErrorCode::Busy: return ExitCode::Busy;
    case ErrorCode::Exhausted:
    case ErrorCode::Io: return ExitCode::InputOutput;
    case ErrorCode::Denied: return ExitCode::Denied;
    case ErrorCode::Cancelled: return ExitCode::Interrupted;
    case ErrorCode::Internal: break;
  }
  return ExitCode::Internal;
}

std::string exit_code_table() {
  static constexpr std::array<std::pair<ExitCode, const char*>, 12> rows{{
      {ExitCode::Ok, "done"},
      {ExitCode::Failure, "a verification failed"},
      {ExitCode::Usage, "wrong command line, flag or setting"},
      {ExitCode::CorruptData, "damaged or unexpected data"},
      {ExitCode::InputNotFound, "file, folder, checkpoint or profile not found"},
      {ExitCode::Unavailable, "a server, device, version or feature is not available"},
      {ExitCode::Internal, "a bug in neuroshardd"},
      {ExitCode::CantCreate, "the output already exists or can't be created"},
      {ExitCode::InputOutput, "reading or writing failed; disk or memory is full"},
      {ExitCode::Busy, "the data directory or a port is in use by another process"},
      {ExitCode::Denied, "no permission, or a wrong passphrase"},
      {ExitCode::Interrupted, "stopped by Ctrl-C or a signal before the end"},
  }};
  std::string text = "Exit codes:\n";
  for (const auto& [code, meaning] : rows)
    text += fmt::format("  {:>3}  {}\n", static_cast<int>(code), meaning);
  return text;
}

}  // namespace neuroshard::app
