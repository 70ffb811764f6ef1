// For a child process between fork and exec: on Linux, it is killed when the thread that started it ends. Header
// only.
#pragma once

#include <csignal>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace neuroshard::test {

inline void end_with_parent() {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

}  // namespace neuroshard::test
