// NS_CHECK: for bugs only, never for input from a peer, a disk or a person. A failed check aborts with file
// and line.
#pragma once

namespace neuroshard::detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}

#define NS_CHECK(condition)               \
  (static_cast<bool>(condition) ? void(0) \
                                : ::neuroshard::detail::check_failed(#condition, __FILE__, __LINE__))
