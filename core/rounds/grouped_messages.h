// What nodes of a round of two levels say besides what small groups say (messages.h). As RoundPost; kinds do
// not meet those of messages.h, so that nodes of either sort refuse the other's.
//
//   64 group       a post of messages.h, within the sub-group
//   65 proposal    relay u8 · view u32 · leader's prepare 64 · length u32 · content · 0 or 1: prepares of an
//                  earlier view
//   66 lock        relay u8 · quorum of prepares
//   67 certificate relay u8 · quorum of commits
//   68 votes       step u8 · slot · round u64 · view u32 · name's hash 32 · signatures: member u16 ·
//   signature 69 result      a sub-group's certificate (grouped_body.h) 70 new view    slot · round u64 ·
//   view u32 · 0 or 1: lock relay 1: who gets it passes it on in its sub-group
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/rounds/grouped_body.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {

struct GroupPost {
  Bytes item;  // encode_item()
};
struct GroupedProposal {
  bool relay = false;
  std::uint32_t view = 0;
  // The leader's own prepare of the name: shows whose proposal it is, through whomever it comes.
  crypto::Signature leader{};
  Bytes content;
  std::optional<RoundQuorum> justification;
};
struct GroupedLock {
  bool relay = false;
  RoundQuorum quorum;
};
struct GroupedCertificate {
  bool relay = false;
  RoundQuorum quorum;
};
struct CollectedVotes {
  RoundVote vote;
  std::vector<MemberSignature> signatures;  // at most a sub-group's
};
using GroupedPost = std::variant<GroupPost, GroupedProposal, GroupedLock, GroupedCertificate, CollectedVotes,
                                 GroupResult, NewViewPost>;

Bytes encode_grouped_post(const GroupedPost& post);
Expected<GroupedPost> decode_grouped_post(ByteSpan bytes);

// The round that a post of either sort is of; nothing: not readable. Any bytes are safe.
std::optional<std::uint64_t> round_of_post(ByteSpan bytes);
bool is_grouped_post(ByteSpan bytes);

}  // namespace neuroshard::rounds
