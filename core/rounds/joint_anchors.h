// One hash for the anchors of all fragments (fragments.h) of a round, so that nodes can compare whether they
// hold the same model: of one fragment its anchor, of several
//
//   SHA-256("neuroshard/fragments/1" · round u64 little-endian · the anchors, in the fragments' order)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::rounds {

Hash256 joint_anchor(std::uint64_t round, const std::vector<Hash256>& anchors);

// The certified ones that a node has seen.  Threads: one.
class JointAnchors {
 public:
  // By so many rounds a fragment may be ahead of another.
  static constexpr std::size_t rounds_kept = 1024;
  explicit JointAnchors(std::size_t fragments) : fragments_(fragments) {}

  void add(std::size_t fragment, std::uint64_t round, const Hash256& anchor);
  // Nothing: some fragment's is not known.
  std::optional<Hash256> of_all(std::uint64_t round) const;

 private:
  const std::size_t fragments_;
  std::map<std::uint64_t, std::map<std::size_t, Hash256>> rounds_;
};

}  // namespace neuroshard::rounds
