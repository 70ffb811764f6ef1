// A slot's chain of certificates, from its genesis to the newest one that this node knows, with what others
// need to follow it. A certificate counts when more than two thirds of the members that the known part of the
// chain ends with have signed it: nobody's own list of who is there enters.
//
// Rounds between may be left out as long as the member list stays the same, because the same keys sign: so a
// chain of years is its changes of members and the newest rounds.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/rounds/messages.h"

namespace neuroshard::rounds {

inline constexpr std::size_t recent_certificates = 64;      // kept in any case
inline constexpr std::size_t max_kept_certificates = 4096;  // older changes of members are then forgotten

// Which of two histories of different genesis goes on when they meet: certified rounds beat none, those that
// several members have signed beat those of one alone, then more tokens, then the lower genesis hash.
bool better_branch(const RoundStatus& a, const RoundStatus& b);

class RoundChain {
 public:
  // Threads: one.
  RoundChain(const Hash256& network, RoundBody genesis);
  // What encode() wrote, on this node's own disk: signatures are not checked again. Corrupt.
  static Expected<RoundChain> decode(const Hash256& network, ByteSpan bytes);
  Bytes encode() const;

  const RoundSlot& slot() const { return kept_.front().body.slot; }
  const Hash256& genesis() const { return genesis_; }
  const RoundBody& tip() const { return kept_.back().body; }
  const RoundCertificate& tip_certificate() const { return kept_.back(); }
  const Hash256& tip_hash() const { return tip_hash_; }
  // Who makes the next round.
  const std::vector<RoundMember>& members() const { return members_; }
  // Ever anybody but this node?
  bool alone(const net::NodeId& self) const;
  // Rounds that more than one member has signed, as a status tells them.
  std::uint32_t shared_rounds() const;

  // Appends. Denied: not signed by enough of members(), or it does not follow; AlreadyExists: not newer.
  Expected<void> add(const RoundCertificate& certificate);
  // What somebody needs whose newest certificate is of round from − 1. From 0: the genesis first.
  ChainAnswer answer(std::uint64_t from) const;

 private:
  void append(const RoundCertificate& certificate);
  void forget();

  Hash256 network_{};
  Hash256 genesis_{}, tip_hash_{};
  std::vector<RoundMember> members_;
  std::deque<RoundCertificate> kept_;  // ascending; the genesis first
  bool others_ = false;
  std::uint64_t shared_from_ = 0;  // the last round of one alone, if there are others
};

}  // namespace neuroshard::rounds
