// A file of its own: <linux/tcp.h> and <netinet/tcp.h> define the same names.
#include "core/platform/socket/detail/received_bytes.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace neuroshard::platform::detail {

std::uint64_t received_bytes(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received
             ? info.tcpi_bytes_received
             : 0;
}

}  // namespace neuroshard::platform::detail
