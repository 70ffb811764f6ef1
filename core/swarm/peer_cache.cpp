#include "core/swarm/peer_cache.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::swarm {
namespace {

constexpr std::array<std::uint8_t, 4> magic{'N', 'S', 'G', 'P'};
constexpr std::uint16_t version = 1;
constexpr std::size_t head_bytes = 8;
constexpr std::size_t entry_head = 10;

Error damaged() {
  return make_error(ErrorCode::Corrupt, "the cache of peers is damaged");
}

// The address group of the place that is dialled first.
std::uint64_t group_of(const net::NodeRecord& record) {
  return record.endpoints.empty() ? 0 : platform::prefix_group(record.endpoints.front().endpoint.ip);
}

}  // namespace

Bytes encode_peer_cache(const std::vector<CachedPeer>& peers) {
  NS_CHECK(peers.size() <= max_cached_peers);
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, version);
  append_le(bytes, static_cast<std::uint16_t>(peers.size()));
  for (const CachedPeer& peer : peers) {
    const Bytes record = net::encode_node_record(peer.record);
    append_le(bytes, to_unix_ms(peer.heard));
    append_le(bytes, static_cast<std::uint16_t>(record.size()));
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  const Hash256 sum = crypto::sha256(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  return bytes;
}

Expected<std::vector<CachedPeer>> decode_peer_cache(ByteSpan bytes) {
  if (bytes.size() < head_bytes + sizeof(Hash256) || !std::equal(magic.begin(), magic.end(), bytes.data()))
    return damaged();
  const ByteSpan content = bytes.first(bytes.size() - sizeof(Hash256));
  const Hash256 sum = crypto::sha256(content);
  if (!std::equal(sum.begin(), sum.end(), bytes.data() + content.size())) return damaged();
  if (load_le<std::uint16_t>(bytes.data() + 4) != version)
    return make_error(ErrorCode::Unsupported, "the cache of peers is of a newer version of this program");
  const std::size_t count = load_le<std::uint16_t>(bytes.data() + 6);
  if (count > max_cached_peers) return damaged();
  std::vector<CachedPeer> peers;
  ByteSpan rest = content.subspan(head_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (rest.size() < entry_head) return damaged();
    const WallTime heard{std::chrono::milliseconds(load_le<std::int64_t>(rest.data()))};
    const std::size_t size = load_le<std::uint16_t>(rest.data() + 8);
    if (size > rest.size() - entry_head) return damaged();
    NS_ASSIGN_OR_RETURN(net::NodeRecord record,
                        net::decode_node_record(rest.subspan(entry_head).first(size)));
    peers.push_back({std::move(record), heard});
    rest = rest.subspan(entry_head + size);
  }
  if (!rest.empty()) return damaged();
  return peers;
}

void GoodPeers::heard(const net::NodeRecord& record, WallTime when) {
  CachedPeer& peer = peers_[record.id()];
  if (peer.record.sequence <= record.sequence) peer.record = record;
  peer.heard = std::max(peer.heard, when);
  if (peers_.size() <= max_cached_peers) return;
  std::unordered_map<std::uint64_t, std::size_t> crowds;
  for (const auto& [id, each] : peers_) ++crowds[group_of(each.record)];
  const auto less_missed = [&](const auto& a, const auto& b) {
    const std::size_t crowd_a = crowds[group_of(a.second.record)],
                      crowd_b = crowds[group_of(b.second.record)];
    return crowd_a != crowd_b ? crowd_a > crowd_b : a.second.heard < b.second.heard;
  };
  peers_.erase(std::min_element(peers_.begin(), peers_.end(), less_missed));
}

std::vector<CachedPeer> GoodPeers::list() const {
  std::vector<CachedPeer> peers;
  for (const auto& [id, peer] : peers_) peers.push_back(peer);
  std::sort(peers.begin(), peers.end(),
            [](const CachedPeer& a, const CachedPeer& b) { return a.heard > b.heard; });
  return peers;
}

}  // namespace neuroshard::swarm
