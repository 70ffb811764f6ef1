// The contributions to the round in progress, as this node has them, with their payloads. Each contribution is
// checked before it is kept: the cheap checks first, the signature last. The reveal of a member that was long
// absent costs more than a signature and comes after it, once in a round. A second, different contribution of
// a member is evidence; the first one stays.
//
// Threads: one. rules, checks and registry of the tip outlive a call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/chain/checks.h"
#include "core/chain/history.h"
#include "core/chain/verdict.h"
#include "core/outer/codec.h"
#include "core/rounds/contributor_lot.h"
#include "core/rounds/held_items.h"

namespace neuroshard::rounds {

// One row of the model: which values, and how its deltas are encoded.
struct RowShape {
  std::uint32_t row = 0;
  std::uint64_t first = 0;  // its first value
  std::uint64_t values = 0;
};

// The outcome of an item of another member.
struct Taken {
  chain::Verdict verdict = chain::Verdict::Taken;
  std::optional<chain::Evidence> evidence = std::nullopt;
  std::uint32_t member = 0;  // whose contribution is here now: of Taken and Known
};

class ContributionBook {
 public:
  // held: the rows of which this node keeps payloads.
  ContributionBook(const chain::ChainRules& rules, std::vector<RowShape> shapes, outer::CodecOptions codec,
                   chain::SignatureChecks& checks, RoundPool& pool, chain::RowSet held = {});

  // The round that begins after this tip's opening block; forgets everything of an earlier one.
  void open(const chain::ChainTip& tip);
  // Moves the content of this book to a new one.
  ContributionBook retire();
  const Hash256& opening() const { return opening_; }
  std::uint64_t round() const { return round_; }

  struct Entry {
    HeldContributionPtr held;
    std::vector<Payload> payloads;      // per row of the contribution; null: not here
    std::vector<PayloadLeaves> leaves;  // of them, where others check rows
    const std::vector<chain::RowWork>& rows() const { return held->get().rows; }
    std::optional<std::size_t> place_of(std::uint32_t row) const;  // nothing: not of this contribution
  };
  const chain::RowSet& held_rows() const { return held_; }
  const ContributorLot& lot() const { return lot_; }
  // The payload of a row that this node holds is neither here nor known to be unreadable, and can exist.
  bool wants(const Entry& entry, std::size_t place) const {
    const chain::RowWork& work = entry.rows()[place];
    return !entry.payloads[place] && held_.has(work.row) && can_be(work) &&
           unreadable_.count(work.payload) == 0;
  }
  // All its payloads of rows that this node holds are here, but for those that nobody can decode.
  bool is_complete(const Entry& entry) const;
  // With the payloads that came with it. tip: the present one; the opening block may be older. Limit: the round's lot
  // leaves its member out.
  Taken take(const HeldContributionPtr& held, const chain::ChainTip& tip);
  // The certified one takes the place of another contribution of its member, if it is the one that the close
  // names. A leader alone can bring it into a block, so its payloads may have impossible sizes: those are not wanted.
  bool take_certified(const HeldContributionPtr& held, const chain::ContributionEntry& entry,
                      const net::NodeId& id);
  // Whether these bytes are the payload of this work, which can exist. It reads all of them, into `reading`, on any
  // thread; also after the end of this book.
  std::function<bool(const ByteSource& payload)> check_of(const net::NodeId& contributor,
                                                          const chain::RowWork& work,
                                                          std::shared_ptr<PayloadReading> reading) const;
  // Does not read it. False: it has another root or size than this member's contribution names, or is not wanted. Where
  // others check rows, one that can't be decoded is never held, and not asked for again.
  bool take_payload(std::uint32_t member, std::uint32_t row, Payload payload, const PayloadReading& reading);

  const Entry* find(std::uint32_t member) const;
  // Of a member of the registry after the tip's block.
  const Entry* find(const net::NodeId& id, const chain::ChainTip& tip) const;
  // By member; in no order.
  const std::unordered_map<std::uint32_t, Entry>& all() const { return entries_; }
  std::vector<std::uint32_t> members() const;  // ascending
  std::size_t complete() const { return entries_.size() - incomplete_.size(); }
  // Of the committee's members whose contribution is here.
  std::uint64_t units(const chain::CommitteePtr& committee) const;
  // Members whose contribution is here and not complete.
  const std::set<std::uint32_t>& incomplete() const { return incomplete_; }

  // This node's list of what it has, unsigned.
  chain::Vector vector(std::uint32_t voter) const;

 private:
  void put(const HeldContributionPtr& held, std::uint32_t member);
  void add_payloads(std::uint32_t member, const std::vector<Payload>& payloads);
  // A row of this model, and a size that a payload can have.
  bool can_be(const chain::RowWork& work) const;
  // False: nobody can decode it. It is looked at once, and came with its contribution: it is small.
  bool is_readable(const chain::RowWork& work, const ByteSource& payload);
  chain::Verdict check_rows(const chain::Contribution& contribution, const chain::MemberRecord& member,
                            const chain::ChainTip& tip) const;
  // first: what this member signed before in this round; null: nothing is known.
  chain::Verdict check(const HeldContributionPtr& held, const chain::MemberRecord& member,
                       const chain::ChainTip& tip, const chain::Contribution* first);

  const chain::ChainRules* rules_;
  std::vector<RowShape> shapes_;  // by row
  outer::CodecOptions codec_;
  chain::SignatureChecks* checks_;
  RoundPool* pool_;
  chain::RowSet held_;
  Hash256 opening_{};
  std::uint64_t opening_height_ = 0, round_ = 0;
  std::vector<std::uint32_t> rows_;  // of the round
  ContributorLot lot_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  std::map<std::uint32_t, HeldContributionPtr> wrong_;  // signed, with a reveal that costly hashing refuted
  std::set<std::uint32_t> incomplete_;
  std::set<Hash256> unreadable_;  // payloads, by their root
  struct Count {
    chain::CommitteePtr committee;
    std::size_t contributions = 0;
    std::uint64_t units = 0;
  };
  mutable Count count_;  // for the last question: many callers ask while little changes
};

}  // namespace neuroshard::rounds
