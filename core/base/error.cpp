#include "core/base/error.h"

namespace neuroshard {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return "invalid argument";
    case ErrorCode::NotFound: return "not found";
    case ErrorCode::AlreadyExists: return "already exists";
    case ErrorCode::Corrupt: return "corrupt";
    case ErrorCode::Timeout: return "timeout";
    case ErrorCode::Unavailable: return "unavailable";
    case ErrorCode::Busy: return "busy";
    case ErrorCode::Exhausted: return "exhausted";
    case ErrorCode::Denied: return "denied";
    case ErrorCode::Unsupported: return "unsupported";
    case ErrorCode::Cancelled: return "cancelled";
    case ErrorCode::Io: return "input/output";
    case ErrorCode::Internal: return "internal";
  }
  return "unknown";
}

Error Error::with_context(std::string_view where) && {
  context = context.empty() ? std::string(where) : std::string(where) + ": " + context;
  return std::move(*this);
}

std::string Error::describe() const {
  return context.empty() ? message : context + ": " + message;
}

}  // namespace neuroshard
