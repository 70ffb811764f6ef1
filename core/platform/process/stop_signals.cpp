#include "core/platform/process/stop_signals.h"

namespace neuroshard::platform {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  for (const int number : {SIGINT, SIGHUP}) {
    struct sigaction inherited {};
    if (sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      sigaddset(&set, number);
  }
  return set;
}

}  // namespace neuroshard::platform
