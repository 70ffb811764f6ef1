// The file of peers that were good before, which somebody may have touched: what is read is within its bounds
// and writes itself back. The input is the content without its checksum, or, with a first byte of 1, the file
// as it is.
#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/swarm/peer_cache.h"

using namespace neuroshard;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Bytes file(data + 1, data + size);
  if (data[0] != 1) {
    const Hash256 sum = crypto::sha256(file);
    file.insert(file.end(), sum.begin(), sum.end());
  }
  const auto peers = swarm::decode_peer_cache(file);
  if (!peers.ok()) return 0;
  NS_CHECK(peers->size() <= swarm::max_cached_peers);
  NS_CHECK(swarm::encode_peer_cache(*peers) == file);
  swarm::GoodPeers good;
  for (const swarm::CachedPeer& peer : *peers) good.heard(peer.record, peer.heard);
  NS_CHECK(good.list().size() <= peers->size());
  return 0;
}
