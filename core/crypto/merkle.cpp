#include "core/crypto/merkle.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::crypto {
namespace {

constexpr std::uint8_t leaf_prefix[] = {0x00};
constexpr std::uint8_t node_prefix[] = {0x01};

Hash256 parent_of(const Hash256& left, const Hash256& right) {
  return Sha256().update(ByteSpan(node_prefix)).update(ByteSpan(left)).update(ByteSpan(right)).finish();
}

// The nodes of the next level in place; an odd last node moves up unchanged.
void rise(std::vector<Hash256>& level) {
  std::size_t parents = 0;
  for (std::size_t i = 0; i + 1 < level.size(); i += 2) level[parents++] = parent_of(level[i], level[i + 1]);
  if (level.size() % 2 != 0) level[parents++] = level.back();
  level.resize(parents);
}

}  // namespace

Hash256 merkle_leaf(ByteSpan chunk) {
  return Sha256().update(ByteSpan(leaf_prefix)).update(chunk).finish();
}

Hash256 merkle_root(Span<const Hash256> leaves) {
  if (leaves.empty()) return sha256({});
  std::vector<Hash256> level(leaves.begin(), leaves.end());
  while (level.size() > 1) rise(level);
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

MerkleTree::MerkleTree(std::vector<Hash256> leaves) {
  NS_CHECK(!leaves.empty());
  levels_.push_back(std::move(leaves));
  while (levels_.back().size() > 1) {
    std::vector<Hash256> level = levels_.back();
    rise(level);
    levels_.push_back(std::move(level));
  }
}

std::vector<Hash256> MerkleTree::path(std::size_t index) const {
  NS_CHECK(index < leaves().size());
  std::vector<Hash256> path;
  for (const std::vector<Hash256>& level : levels_) {
    if (const std::size_t beside = index ^ 1; beside < level.size()) path.push_back(level[beside]);
    index /= 2;
  }
  return path;
}

std::optional<Hash256> merkle_root_of_path(const Hash256& leaf, std::uint64_t index, std::uint64_t count,
                                           Span<const Hash256> path) {
  if (index >= count) return std::nullopt;
  Hash256 node = leaf;
  std::size_t used = 0;
  for (; count > 1; index /= 2, count = count / 2 + count % 2) {
    if ((index ^ 1) >= count) continue;
    if (used == path.size()) return std::nullopt;
    const Hash256& beside = path[used++];
    node = index % 2 == 0 ? parent_of(node, beside) : parent_of(beside, node);
  }
  return used == path.size() ? std::optional(node) : std::nullopt;
}

}  // namespace neuroshard::crypto
