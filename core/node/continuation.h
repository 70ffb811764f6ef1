// A person's decision that a network goes on without members that are gone (core/chain/recovery.h).
#pragma once

#include <string>
#include <vector>

namespace neuroshard::node {

inline constexpr std::size_t max_without = 512;  // members named

struct ContinuationRequest {
  // Node ids of the members that are gone, or the first 8 or more hex characters of them.
  std::vector<std::string> without;
  // Or: the block hash of another member's proposal, with which this node's person agrees.
  std::string agree;
};
struct ContinuationReply {
  std::vector<std::string> without;  // the whole ids
};

}  // namespace neuroshard::node
