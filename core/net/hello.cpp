#include "core/net/hello.h"

#include <fmt/format.h>

namespace neuroshard::net {

Expected<void> check_hello(const Hello& own, const Hello& peer) {
  if (own.network_id != peer.network_id) {
    constexpr std::size_t shown = 6;  // bytes: enough to tell networks apart
    return make_error(ErrorCode::Denied, fmt::format("the peer is of another network: {}…, ours is {}…",
                                                     to_hex(ByteSpan(peer.network_id).first(shown)),
                                                     to_hex(ByteSpan(own.network_id).first(shown))));
  }
  if (own.version.major == peer.version.major) return {};
  return make_error(ErrorCode::Unsupported,
                    fmt::format("the peer speaks version {}.{} of the protocol and this node {}.{}: {}",
                                peer.version.major, peer.version.minor, own.version.major, own.version.minor,
                                peer.version.major > own.version.major ? "upgrade this program"
                                                                       : "the peer has to upgrade"));
}

}  // namespace neuroshard::net
