// The voters on the next block with their units, and the leader of each view (docs/protocol/chain.md). A pure
// function of the registry before that block. Immutable, shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/chain/registry.h"

namespace neuroshard::chain {

struct CommitteeMember {
  std::uint32_t number = 0;
  std::uint32_t units = 0;  // > 0
  crypto::PublicKey key{};
  net::NodeId id{};
  RowSet rows{};  // that it holds
};

class Committee {
 public:
  // members: ascending by number, each with units.
  Committee(std::vector<CommitteeMember> members, VotersMode mode, const Hash256& beacon,
            std::uint64_t height);

  const std::vector<CommitteeMember>& members() const { return members_; }
  std::size_t size() const { return members_.size(); }
  // The position among members().
  std::optional<std::size_t> position(std::uint32_t number) const;
  std::optional<std::size_t> position(const net::NodeId& id) const;
  // All but this one.
  std::vector<net::NodeId> others(const net::NodeId& self) const;
  // At most so many of the others: those that follow this one by id, so that not all choose the same ones.
  std::vector<net::NodeId> neighbours(const net::NodeId& self, std::size_t most) const;
  std::uint64_t units() const { return units_; }
  std::uint32_t units_of(std::uint32_t number) const;  // 0: not in the committee
  // Of those that hold the row.
  std::uint64_t units_holding(std::uint32_t row) const;
  bool is_quorum(std::uint64_t units) const { return 3 * units > 2 * units_; }
  // More than five eighths; where all voters are invited, more than half.
  bool is_stall_quorum(std::uint64_t units) const;
  // Some honest member is among them, if less than a third of the units are Byzantine.
  bool has_honest(std::uint64_t units) const { return 3 * units > units_; }
  bool is_majority(std::uint64_t units) const { return 2 * units > units_; }
  // Position of the leader of a view.
  std::size_t leader(std::uint32_t view) const { return leaders_[view % leaders_.size()]; }
  // The view, below size(), whose leader this position is.
  std::size_t place(std::size_t position) const { return places_[position]; }
  // Beyond `max_direct_voters`: votes go to the leader only, and nobody sends anything to all (relay.h).
  bool is_collected() const { return members_.size() > max_direct_voters; }

 private:
  std::vector<CommitteeMember> members_;
  KeyIndex by_id_;                    // positions
  std::vector<std::size_t> leaders_;  // positions, ascending by hash(beacon, height, node id)
  std::vector<std::size_t> places_;   // by position: where it stands in leaders_
  std::uint64_t units_ = 0;
  VotersMode mode_;
};
using CommitteePtr = std::shared_ptr<const Committee>;

// Of the block after `registry`'s. Never empty: apply_block() refuses a block after which nobody votes.
CommitteePtr make_committee(const ChainRules& rules, const Registry& registry);
// Of the voters whose contributions the close names.
std::uint64_t contributed_units(const CloseSection& close, const Committee& committee);
// The drawn committee of a new epoch, ascending: nodes by lot, each with its units. Empty while all active
// voters' nodes fit. apply_block() draws when more than `max_committee` nodes have units and there is no
// epoch, and at a result when the epoch is over (`epoch_rounds` rounds and `epoch_least_ms`).
std::vector<std::uint32_t> draw_epoch(const Registry& registry, const Hash256& beacon);

// Denied says what does not hold: signers, units, or a stall quorum for a block that needs more.
// committee: of the block; of a succession, the one of the block after it, which consists of the voters that
// continue. A genesis names its signers itself: their numbers are their positions among the founders.
Expected<void> check_certificate(const Certificate& certificate, const Block& block,
                                 const Committee& committee, const Hash256& network, SignatureChecks& checks);
// Signers of the committee, ascending, valid; the units they have. Height and previous block are signed: the
// caller compares them with its own.
Expected<std::uint64_t> check_quorum(const Quorum& quorum, const Committee& committee, const Hash256& network,
                                     SignatureChecks& checks);
// The same without the signatures.
Expected<std::uint64_t> quorum_units(const Quorum& quorum, const Committee& committee);

}  // namespace neuroshard::chain
