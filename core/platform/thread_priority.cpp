#include "core/platform/thread_priority.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace neuroshard::platform {

void run_in_background() {
#if defined(__linux__)
  // Idle rather than nice 19: a nice thread that wakes up after the disk has served it may still take a
  // processor from a computing thread for some milliseconds, and all others wait for that one.
  sched_param none{};
  static_cast<void>(::sched_setscheduler(0, SCHED_IDLE, &none));
#endif
}

}  // namespace neuroshard::platform
