#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rendezvous/mainline.h"

namespace neuroshard::rendezvous {

std::array<std::uint8_t, 20> mainline_key(const Hash256& network_id) {
  const Hash256 hash = crypto::Sha256()
                           .update("neuroshard mainline 1")
                           .update(ByteSpan{network_id.data(), network_id.size()})
                           .finish();
  std::array<std::uint8_t, 20> key{};
  std::copy_n(hash.begin(), key.size(), key.begin());
  return key;
}

std::string listen_interfaces(const platform::Endpoint& at) {
  if (at.ip == platform::IpAddress{}) return fmt::format("0.0.0.0:{0},[::]:{0}", at.port);
  return platform::to_text(at);
}

}  // namespace neuroshard::rendezvous
