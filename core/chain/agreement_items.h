// The items that members of a committee send to each other to agree on a block (agreement.h). An item carries
// only what its receiver needs.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/chain/block.h"
#include "core/chain/vote.h"

namespace neuroshard::chain {

struct Proposal {
  std::uint32_t view = 0;
  BlockPtr block;
  std::optional<Quorum> justification;  // the leader's lock, for the same block; never of a later view
  std::optional<Quorum> full;           // of the justification (AgreementMemory::full_lock)
  // Of the leader's own prepare for the block in this view: others pass its proposal on in a large committee.
  std::optional<crypto::Signature> prepare = std::nullopt;
};
struct NewView {  // "the leaders before this view have not brought it about"; signed by the connection only
  std::uint64_t height = 0;
  Hash256 previous{};
  std::uint32_t view = 0;
  std::optional<Quorum> lock;  // the highest; to the leader only
  BlockPtr block;              // of the lock, so that nobody has to fetch it; null without
  std::optional<Quorum> full;  // of the lock
};
struct Locked {  // collected votes: a quorum of prepares
  Quorum prepares;
  std::optional<Quorum> full;
};
using AgreementItem = std::variant<Proposal, SignedVote, NewView, Locked>;

}  // namespace neuroshard::chain
