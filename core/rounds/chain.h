// A slot's chain of certified rounds, from its genesis to the newest one that this node knows, with what
// others need to follow it. A certificate counts when more than two thirds of the members that the known
// part of the chain ends with have signed it: nobody's own list of who is there enters. Rounds of one group
// and of two levels follow each other as members come and go.
//
// Rounds between may be left out as long as the member list stays the same, because the same keys sign: so a
// chain of years is its changes of members and the newest rounds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/rounds/grouped_commons.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {

inline constexpr std::size_t recent_certificates = 64;      // kept in any case
inline constexpr std::size_t recent_grouped = 8;            // the same, of two levels: they are large
inline constexpr std::size_t max_kept_certificates = 4096;  // older changes of members are then forgotten
inline constexpr std::size_t max_kept_content = 16u << 20;  // bytes of rounds of two levels: the same

// Which of two histories of different genesis goes on when they meet: certified rounds beat none, those that
// several members have signed beat those of one alone, then more tokens, then the lower genesis hash.
bool better_branch(const RoundStatus& a, const RoundStatus& b);

// Where a chain begins that has no genesis body, because its first members are
// too many for one.  Immutable, shared.
struct ChainBase {
  std::shared_ptr<const RoundBody> body;  // round, anchor, tokens; members as in the roster
  Hash256 tip{};
  RosterPtr roster;
};
ChainBase chain_base(const RoundSlot& slot, const Hash256& anchor, std::vector<crypto::PublicKey> founders);

class RoundChain {
 public:
  // Threads: one.
  RoundChain(const Hash256& network, RoundBody genesis);
  RoundChain(const Hash256& network, ChainBase base);
  // What encode() wrote, on this node's own disk: signatures are not checked again. Corrupt.
  static Expected<RoundChain> decode(const Hash256& network, ByteSpan bytes,
                                     std::size_t group_members = max_group_members);
  Bytes encode() const;

  const RoundSlot& slot() const { return tip_->slot; }
  const Hash256& genesis() const { return genesis_; }
  // The newest round; of two levels as if it were one group's (GroupedLink::flat).
  const RoundBody& tip() const { return *tip_; }
  RoundLink tip_link() const { return link_of(kept_.back(), true); }
  // Null: the newest round is of one group.
  const GroupedLinkPtr& tip_grouped() const { return kept_.back().many; }
  const Hash256& tip_hash() const { return tip_hash_; }
  // Who makes the next round.
  const std::vector<RoundMember>& members() const { return roster_->members; }
  const RosterPtr& roster() const { return roster_; }
  // Ever anybody but this node?
  bool alone(const net::NodeId& self) const;
  // Rounds that more than one member has signed, as a status tells them.
  std::uint32_t shared_rounds() const;

  // Appends. Denied: not signed by enough of members(), or it does not follow; AlreadyExists: not newer.
  Expected<void> add(const RoundLink& link, GroupedCommons& commons);
  // The same for a round of one group.
  Expected<void> add(const RoundCertificate& certificate);
  // One that was checked: the next round, made by roster().
  void append(const GroupedLinkPtr& link);
  // What somebody needs whose newest round is from − 1. From 0: the genesis first.
  ChainAnswer answer(std::uint64_t from) const;

 private:
  struct Kept {
    std::shared_ptr<const RoundCertificate> one;  // of one group, and the genesis
    GroupedLinkPtr many;                          // of two levels; neither: a base
    bool changes = false;                         // who the members are
    const RoundBody& body() const { return many ? *many->flat : one->body; }
    std::size_t bytes() const { return many ? many->content->size() : 0; }
  };
  RoundLink link_of(const Kept& kept, bool with_roster) const;
  void append(RoundCertificate certificate);
  void append_kept(Kept kept, const Hash256& tip, RosterPtr next);
  Expected<void> append_read(const RoundLink& link, std::size_t group_members);
  void forget();

  Hash256 network_{};
  Hash256 genesis_{}, tip_hash_{};
  std::optional<ChainBase> base_;
  std::shared_ptr<const RoundBody> tip_;
  RosterPtr roster_;
  std::deque<Kept> kept_;  // ascending; the genesis first
  std::size_t content_ = 0;
  bool others_ = false;
  std::uint64_t shared_from_ = 0;  // the last round of one alone, if there are others
};

}  // namespace neuroshard::rounds
