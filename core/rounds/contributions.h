// The contributions to one round as this node holds them: each is checked before it is believed, refused with
// a reason that is counted, and kept with its payload. Two payloads of one sender: both out, the two signed
// contributions are the evidence.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/rounds/signature_checks.h"

namespace neuroshard::rounds {

// What a slot's network agreed on; of its profile.
struct ContributionRules {
  Hash256 network{};
  RoundSlot slot;
  outer::CodecOptions codec;
  std::uint64_t values = 0;         // of a delta
  std::uint32_t inner_steps = 500;  // H
  // What a member can train in a round; weights are capped there, so that a liar gains nothing.
  std::uint64_t most_tokens = 1;
};
// Fewer steps are not worth a contribution: H/20, at least 1.
constexpr std::uint32_t least_steps(std::uint32_t inner_steps) {
  return inner_steps < 20 ? 1 : inner_steps / 20;
}

using Payload = std::shared_ptr<const Bytes>;

class RoundContributions {
 public:
  struct Entry {
    Contribution contribution;
    Payload payload;    // null: not here yet
    bool copy = false;  // of a payload that another named before, as this node heard it
  };
  // last_sequence: of contributions to earlier rounds, by node.  Threads: one.
  RoundContributions(ContributionRules rules, std::uint64_t round, const Hash256& base,
                     std::vector<RoundMember> members, std::map<net::NodeId, std::uint64_t> last_sequence,
                     SignatureChecks* signatures = nullptr);  // outlives it; null: each is checked

  // Taken, Known, or why not. A copy is kept all the same: which of the two came first, members hear
  // differently, and a leader's body may name either, never both.
  Verdict take(const Contribution& contribution);
  // A payload that belongs to a contribution and has its hash and length; false: nobody's.
  bool take_payload(Bytes payload);
  Verdict take_evidence(const EvidencePost& evidence);
  // One that a body names which a quorum has prepared, whatever else this node has of its sender: it may be
  // certified yet. False: it can't be a contribution to this round.
  bool keep_named(const Contribution& contribution);
  // Whether a payload's contents can be used is found when it is decoded.
  void exclude(const net::NodeId& id) { excluded_.emplace(id, std::nullopt); }

  const Entry* find(const net::NodeId& id) const;  // null also for excluded ones
  const Entry* find_payload(const Hash256& payload) const;
  const std::map<net::NodeId, Entry>& all() const { return entries_; }
  bool usable(const net::NodeId& id) const;  // here, with its payload, not excluded, nobody's copy
  bool excluded(const net::NodeId& id) const { return excluded_.count(id) != 0; }
  // Excluded for two payloads: the evidence is here.
  bool proven(const net::NodeId& id) const {
    const auto at = excluded_.find(id);
    return at != excluded_.end() && at->second.has_value();
  }
  std::size_t usable_count() const;
  std::size_t announced() const;  // not excluded, with or without payload
  std::size_t full() const;       // of them with H steps
  std::vector<EvidencePost> evidence() const;
  // Of all senders, to refuse replays in later rounds.
  std::map<net::NodeId, std::uint64_t> sequences() const;

 private:
  Verdict check(const Contribution& contribution) const;

  ContributionRules rules_;
  std::uint64_t round_ = 0;
  Hash256 base_{};
  SignatureChecks* signatures_;
  std::vector<RoundMember> members_;
  std::map<net::NodeId, std::uint64_t> last_sequence_;
  std::map<net::NodeId, Entry> entries_;
  std::map<net::NodeId, std::optional<EvidencePost>> excluded_;
  std::map<Hash256, net::NodeId> owners_;  // of payloads: who named it first
  std::map<Hash256, Entry> named_;         // by payload; of none of the entries
};

}  // namespace neuroshard::rounds
