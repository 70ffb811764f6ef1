// The contributions to the round in progress, as this node has them, with their payloads. Each contribution is
// checked before it is kept: the cheap checks first, the signature last. The reveal of a member that was long
// absent costs more than a signature and comes after it, once in a round. A second, different contribution of
// a member is evidence; the first one stays.
//
// Threads: one. rules, checks and registry of the tip outlive a call.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/chain/checks.h"
#include "core/chain/history.h"
#include "core/chain/verdict.h"
#include "core/outer/codec.h"

namespace neuroshard::rounds {

using PayloadBytes = std::shared_ptr<const Bytes>;

// One row of the model: which values, and how its deltas are encoded.
struct RowShape {
  std::uint32_t row = 0;
  std::uint64_t first = 0;  // its first value
  std::uint64_t values = 0;
};

// The commitment to a payload: a Merkle root over slices of 64 KiB, the contributor's node id in each leaf, so
// that the same bytes under another name have another root.
Hash256 payload_root(const net::NodeId& contributor, ByteSpan payload);
inline constexpr std::size_t payload_slice_bytes = 64u << 10;

// Holds items of other members in memory. A simulation of thousands of nodes in one process holds equal bytes once.
class RoundPool {
 public:
  virtual ~RoundPool() = default;
  virtual std::shared_ptr<const chain::Contribution> hold(chain::Contribution contribution) {
    return std::make_shared<const chain::Contribution>(std::move(contribution));
  }
  virtual std::shared_ptr<const chain::Vector> hold(chain::Vector vector) {
    return std::make_shared<const chain::Vector>(std::move(vector));
  }
  virtual PayloadBytes hold(Bytes payload) { return std::make_shared<const Bytes>(std::move(payload)); }
};

class ContributionBook {
 public:
  ContributionBook(const chain::ChainRules& rules, std::vector<RowShape> shapes, outer::CodecOptions codec,
                   chain::SignatureChecks& checks, RoundPool& pool);

  // The round that begins after this tip's opening block; forgets everything of an earlier one.
  void open(const chain::ChainTip& tip);
  // Moves the content of this book to a new one.
  ContributionBook retire();
  const Hash256& opening() const { return opening_; }
  std::uint64_t round() const { return round_; }

  struct Entry {
    std::shared_ptr<const chain::Contribution> contribution;
    std::uint32_t member = 0;
    net::NodeId id{};
    Hash256 contribution_id{};
    std::vector<PayloadBytes> payloads;  // per row of the contribution; null: not here
    bool complete() const;
  };
  struct Taken {
    chain::Verdict verdict = chain::Verdict::Taken;
    std::optional<chain::Evidence> evidence;
  };
  // tip: the present one; the opening block may be older.
  Taken take(const chain::Contribution& contribution, const chain::ChainTip& tip);
  // The certified one takes the place of another contribution of its member, if it is the one that the close
  // names.
  bool take_certified(const chain::Contribution& contribution, const chain::ContributionEntry& entry,
                      const net::NodeId& id);
  // Whether the payload has the root that this member's contribution names.
  bool take_payload(std::uint32_t member, std::uint32_t row, Bytes payload);

  const Entry* find(std::uint32_t member) const;
  // Of a member of the registry after the tip's block.
  const Entry* find(const net::NodeId& id, const chain::ChainTip& tip) const;
  PayloadBytes payload(std::uint32_t member, std::uint32_t row) const;  // null: not here
  const std::map<std::uint32_t, Entry>& all() const { return entries_; }
  std::size_t complete() const { return entries_.size() - incomplete_.size(); }
  // Members whose contribution is here without all of its payloads.
  const std::set<std::uint32_t>& incomplete() const { return incomplete_; }

  // This node's list of what it has, unsigned.
  chain::Vector vector(std::uint32_t voter) const;

 private:
  void put(const chain::Contribution& contribution, std::uint32_t member, const net::NodeId& id);
  chain::Verdict check_rows(const chain::Contribution& contribution, const chain::ChainTip& tip) const;
  // first: what this member signed before in this round; null: nothing is known.
  chain::Verdict check(const chain::Contribution& contribution, const chain::MemberRecord& member,
                       const chain::ChainTip& tip, const chain::Contribution* first);

  const chain::ChainRules* rules_;
  std::vector<RowShape> shapes_;  // by row
  outer::CodecOptions codec_;
  chain::SignatureChecks* checks_;
  RoundPool* pool_;
  Hash256 opening_{};
  std::uint64_t opening_height_ = 0, round_ = 0;
  std::vector<std::uint32_t> rows_;  // of the round
  std::map<std::uint32_t, Entry> entries_;
  std::map<std::uint32_t, chain::Contribution> wrong_;  // signed, with a reveal that costly hashing refuted
  std::set<std::uint32_t> incomplete_;
};

}  // namespace neuroshard::rounds
