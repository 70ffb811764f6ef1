#include "core/rounds/joint_anchors.h"

#include <string_view>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::rounds {

Hash256 joint_anchor(std::uint64_t round, const std::vector<Hash256>& anchors) {
  if (anchors.size() == 1) return anchors.front();
  constexpr std::string_view domain = "neuroshard/fragments/1";
  Bytes bytes(domain.begin(), domain.end());
  append_le(bytes, round);
  for (const Hash256& anchor : anchors) bytes.insert(bytes.end(), anchor.begin(), anchor.end());
  return crypto::sha256(bytes);
}

void JointAnchors::add(std::size_t fragment, std::uint64_t round, const Hash256& anchor) {
  NS_CHECK(fragment < fragments_);
  rounds_[round][fragment] = anchor;
  if (rounds_.size() > rounds_kept) rounds_.erase(rounds_.begin());
}

std::optional<Hash256> JointAnchors::of_all(std::uint64_t round) const {
  const auto at = rounds_.find(round);
  if (at == rounds_.end() || at->second.size() != fragments_) return std::nullopt;
  std::vector<Hash256> anchors;
  for (const auto& [fragment, anchor] : at->second) anchors.push_back(anchor);
  return joint_anchor(round, anchors);
}

}  // namespace neuroshard::rounds
