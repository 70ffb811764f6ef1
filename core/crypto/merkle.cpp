#include "core/crypto/merkle.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::crypto {
namespace {

constexpr std::uint8_t leaf_prefix[] = {0x00};
constexpr std::uint8_t node_prefix[] = {0x01};

}  // namespace

Hash256 merkle_leaf(ByteSpan chunk) {
  return Sha256().update(ByteSpan(leaf_prefix)).update(chunk).finish();
}

Hash256 merkle_root(Span<const Hash256> leaves) {
  if (leaves.empty()) return sha256({});
  std::vector<Hash256> level(leaves.begin(), leaves.end());
  while (level.size() > 1) {
    std::size_t parents = 0;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      level[parents++] = Sha256()
                             .update(ByteSpan(node_prefix))
                             .update(ByteSpan(level[i]))
                             .update(ByteSpan(level[i + 1]))
                             .finish();
    }
    if (level.size() % 2 != 0) level[parents++] = level.back();
    level.resize(parents);
  }
  return level.front();
}

Hash256 merkle_root(ByteSpan bytes, std::size_t chunk_bytes) {
  NS_CHECK(chunk_bytes > 0);
  std::vector<Hash256> leaves;
  leaves.reserve(bytes.size() / chunk_bytes + 1);
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    leaves.push_back(merkle_leaf(bytes.subspan(at, std::min(chunk_bytes, bytes.size() - at))));
  }
  return merkle_root(leaves);
}

}  // namespace neuroshard::crypto
