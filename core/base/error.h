// The one error type. An expected failure travels as Expected<T> (expected.h); callers branch on the code,
// people read the message. A bug is not an error: see check.h. C++17: the compute module sees this header.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace neuroshard {

enum class ErrorCode {
  InvalidArgument,  // the caller's input is wrong; the message says what to give instead
  NotFound,
  AlreadyExists,
  Corrupt,  // stored or received bytes are not what they should be
  Timeout,
  Unavailable,  // not now; trying again may work
  Busy,         // held by another process or job
  Exhausted,    // memory, disk or a named bound
  Denied,       // permission, protection, policy
  Unsupported,  // a version or feature this build does not have
  Cancelled,
  Io,
  Internal,
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;  // what is wrong and what to do, for a person; never a secret
  std::string context;  // where: one phrase per layer, outermost first ("reading manifest: parsing shard 3")

  // Adds one layer of context in front; call at most once per layer.
  Error with_context(std::string_view where) &&;
  // "context: message", for logs and terminals.
  std::string describe() const;
};

inline Error make_error(ErrorCode code, std::string message) {
  return Error{code, std::move(message), {}};
}

}  // namespace neuroshard
