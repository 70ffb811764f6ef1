#include "core/net/peer_channel.h"

#include <algorithm>

namespace neuroshard::net {

Duration call_deadline(Duration allowed, std::size_t request_bytes, std::size_t answer_bytes) {
  constexpr double least_rate = 1e6 / 8;  // bytes per second
  const double seconds = static_cast<double>(request_bytes + answer_bytes) / least_rate;
  return std::max(allowed, least_deadline) + Duration(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace neuroshard::net
