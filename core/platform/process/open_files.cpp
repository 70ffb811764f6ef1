#include "core/platform/process/open_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace neuroshard::platform {

void raise_open_file_limit() {
  constexpr rlim_t most = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, most);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

std::size_t open_file_limit() {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<std::size_t>(limit.rlim_cur) : std::numeric_limits<std::size_t>::max();
}

int move_high(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, FD_SETSIZE);
  if (high < 0) return descriptor;
  close(descriptor);
  return high;
}

int duplicate_high(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, FD_SETSIZE);
  return high >= 0 ? high : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

bool next_file_suits_select() {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (next < 0) return false;
  close(next);
  return next < FD_SETSIZE * 3 / 4;
}

}  // namespace neuroshard::platform
