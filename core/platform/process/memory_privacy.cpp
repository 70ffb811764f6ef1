#include "core/platform/process/memory_privacy.h"

#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace neuroshard::platform {

void forbid_core_dumps() {
#ifdef __linux__
  // With 0, Linux still starts the program that core_pattern names and hands it the dump; with 1 it does not
  // (core(5)). No file is as short as 1 byte, so it makes none either.
  constexpr rlim_t bytes = 1;
#else
  constexpr rlim_t bytes = 0;
#endif
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max < bytes ? limit.rlim_max : bytes;
  limit.rlim_max = limit.rlim_cur;
  static_cast<void>(setrlimit(RLIMIT_CORE, &limit));
}

void forbid_inspection() {
#ifdef __linux__
  static_cast<void>(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
#endif
}

}  // namespace neuroshard::platform
