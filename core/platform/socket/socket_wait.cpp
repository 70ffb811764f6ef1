#include "core/platform/socket/socket_wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {

Expected<bool> wait_for(Span<SocketWait> waits, Duration limit) {
  std::vector<pollfd> polled;
  polled.reserve(waits.size());
  for (const SocketWait& wait : waits) {
    polled.push_back(
        {wait.descriptor, static_cast<short>((wait.read ? POLLIN : 0) | (wait.write ? POLLOUT : 0)), 0});
  }
  constexpr Duration longest = std::chrono::hours(1);
  const auto ms =
      std::chrono::ceil<std::chrono::milliseconds>(std::clamp(limit, Duration(0), longest)).count();
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(ms));
  if (ready < 0 && errno != EINTR) return detail::socket_error("waiting for a socket", errno);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const short events = ready > 0 ? polled[i].revents : short{0};
    waits[i].over = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    waits[i].read = waits[i].read && (waits[i].over || (events & POLLIN) != 0);
    waits[i].write = waits[i].write && (waits[i].over || (events & POLLOUT) != 0);
  }
  return ready > 0;
}

}  // namespace neuroshard::platform
