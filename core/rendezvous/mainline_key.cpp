#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

std::vector<platform::Endpoint> draw(std::vector<platform::Endpoint> answer,
                                     std::vector<platform::Endpoint>* told, Rng& rng) {
  std::vector<platform::Endpoint> fresh;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (fresh.size() == most_of_answer || told->size() >= most_of_search) break;
    std::swap(answer[i], answer[i + rng.below(answer.size() - i)]);
    if (std::find(told->begin(), told->end(), answer[i]) != told->end()) continue;
    told->push_back(answer[i]);
    fresh.push_back(answer[i]);
  }
  return fresh;
}

}  // namespace neuroshard::rendezvous
