// What the members of a round of two levels agree on (SPEC §7). Beyond 16 members the contributions of a
// round are combined twice: each sub-group (dealing.h) agrees on its own aggregate, as a small group does on
// an anchor (agreement.h), and all combine the certified aggregates into one anchor. A GroupedBody names the
// certified results of the sub-groups that are in, and the anchor. What is voted on is its short name
// (grouped_name), a RoundBody without members.
//
//   "NSRG" · version u16 · slot · round u64 · previous 32 · roster's hash 32 · anchor 32 · tokens of all
//   rounds u64 · groups u16 · changes u16 · groups ascending: number u16 · aggregate's hash 32 · tokens u64 ·
//   view u32 · contributors u8 · signatures u8 · contributors (as in certificate.h, index within the
//   sub-group) · signatures · changes (as there)
//
// Members are not in it: they follow from the roster and the dealing. 12 members are about 1.2 KiB: linear in
// the members, once a round.
//
// Why two anchors of one round are never both certified, if less than a third of all members lie:
//   The name is agreed on by all n members of the roster, more than two thirds of all, in one RoundAgreement
//   (agreement.h; votes are collected, not sent from each to each). A quorum counts members, wherever they
//   sit, not sub-groups: so where the liars are does not matter, not even if they are all of one sub-group.
//   Counting sub-groups by quorums of their own would be smaller and weaker: with a quarter of liars a random
//   sub-group of 12 has four or more in 35 % of all cases, and those would sign anything.
//   Nothing about the sub-groups' own agreements enters: which of its results is in the body is decided
//   above.
//
// What a sub-group's certificate is for: that its aggregate is what an honest quorum of it computed, and can
// be had from it. Who else votes on the body has checked its signatures and the top step, not the
// contributions. If two thirds of a sub-group lie, they certify any aggregate: one row among G for the rule
// above, that counts as one liar. A sub-group without a quorum is left out, and the work of its members is
// carried into their next contribution (node of the round): it counts once or not yet.
#pragma once

#include <memory>
#include <vector>

#include "core/rounds/dealing.h"

namespace neuroshard::rounds {

struct GroupResult {
  std::uint16_t group = 0;
  // body: slot, round, previous = group_beacon, anchor = SHA-256 of the aggregate's payload, tokens = those
  // that count, the sub-group's members and contributors, no changes. Of commits.
  RoundQuorum certificate;
};

struct GroupedBody {
  RoundSlot slot;
  std::uint64_t round = 0;
  Hash256 previous{};
  Hash256 roster{};
  Hash256 anchor{};
  std::uint64_t tokens = 0;
  std::vector<GroupResult> groups;  // ascending, at least one
  std::vector<RoundChange> changes;
};

inline constexpr std::size_t max_grouped_changes = 1024;

Bytes encode_grouped_body(const GroupedBody& body);
// Of the round that was dealt; signatures are not checked. Corrupt, Unsupported; Denied: of another round.
Expected<GroupedBody> decode_grouped_body(ByteSpan bytes, const Deal& deal);
// More than two thirds of each sub-group have signed its result, and changes are their node's own word.
// Denied.
Expected<void> check_groups(const GroupedBody& body, const Deal& deal, const Hash256& network);
// What is voted on. content: SHA-256 of the encoded body.
RoundBody grouped_name(const GroupedBody& body, const Hash256& content);

// Who makes the next round: without those who left or missed two rounds in a row, with those who joined. Who
// was in a sub-group that is left out missed nothing that anybody can tell.
RosterPtr next_roster(const Deal& deal, const GroupedBody& body);

// A result alone, as it goes to the leader: number u16 · certificate (certificate.h).
Bytes encode_group_result(const GroupResult& result);
Expected<GroupResult> decode_group_result(ByteSpan bytes);
// Whether it is of this round and signed. Denied.
Expected<void> check_group_result(const GroupResult& result, const Deal& deal, const Hash256& network);

}  // namespace neuroshard::rounds
