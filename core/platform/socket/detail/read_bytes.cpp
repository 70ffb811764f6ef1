// A file of its own: <linux/tcp.h> and <netinet/tcp.h> define the same names.
#include "core/platform/socket/detail/read_bytes.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace neuroshard::platform::detail {

std::uint64_t read_bytes(int descriptor) {
  int waiting = 0;  // asked for first, so that the result is never too small
  if (ioctl(descriptor, SIOCINQ, &waiting) != 0) waiting = 0;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return 0;
  const std::uint64_t received = info.tcpi_bytes_received;
  return received - std::min(received, static_cast<std::uint64_t>(std::max(0, waiting)));
}

}  // namespace neuroshard::platform::detail
