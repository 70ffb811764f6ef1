// One node's knowledge of the other voters' presence, by its own clock: who is silent, whether a block is due
// and whether the height is stalled (docs/protocol/chain.md). Times and counts in, answers out; no timers.
//
// A voter is silent when this node has had neither a vote at this height nor, when nothing is due, a signed
// heartbeat from it for max(`silent_after`, three block times). Nobody votes for marking a voter that it has
// heard.
// Threads: one.
#pragma once

#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/chain/committee.h"
#include "core/chain/rules.h"

namespace neuroshard::chain {

class PresenceWatch {
 public:
  explicit PresenceWatch(const ChainRules& rules);

  // A new block; nothing is due now. Members that the committee had before keep the time of their last sign of
  // life, new ones count as heard now. self: number in the registry, never silent; nothing for a node that is
  // no member.
  void on_block(const Committee& committee, std::optional<std::uint32_t> self, MonotonicTime now);
  // A vote or view of this height arrived; or, while no block is due, a heartbeat or anything else over a
  // connection that proved this voter's key. Votes of earlier heights show nothing: anybody can send them again.
  void heard(std::uint32_t number, MonotonicTime now);
  void block_is_due(MonotonicTime now);  // view 0 starts
  // Times of signed heartbeats: an old one that somebody sends again says nothing new.
  bool is_newer(std::uint32_t number, std::uint64_t time_ms) const;
  void said(std::uint32_t number, std::uint64_t time_ms);

  // Active voters that may be marked dormant now, ascending; never all of them: the one heard last stays.
  std::vector<std::uint32_t> silent(MonotonicTime now) const;
  // Whether this node votes for marking exactly these.
  bool agrees_with(const std::vector<std::uint32_t>& marked, MonotonicTime now) const;
  // Without a block for max(stall_after, 2 deadlines) since one was due.
  bool is_stalled(MonotonicTime now, Duration deadline) const;

 private:
  Duration silent_after() const;

  struct Voter {
    std::uint32_t number = 0;
    std::uint32_t units = 0;
    MonotonicTime last_heard{};
    std::uint64_t said_ms = 0;
  };
  const ChainRules rules_;
  Voter* find(std::uint32_t number);
  const Voter* find(std::uint32_t number) const { return const_cast<PresenceWatch*>(this)->find(number); }
  bool is_silent(const Voter& voter, MonotonicTime now) const;

  std::vector<Voter> voters_;  // of the committee, ascending by number
  std::optional<std::uint32_t> self_;
  std::optional<MonotonicTime> due_since_;
};

}  // namespace neuroshard::chain
