// Signature checks that remember what held: a node meets the same contribution when it arrives, in a proposal and
// in the certified block. A signature that did not hold is checked anew. Bounded: two generations of `most_remembered`.
// Threads: one. inner outlives it.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_set>

#include "core/chain/checks.h"

namespace neuroshard::chain {

inline constexpr std::size_t most_remembered = 1u << 15;

class RememberedChecks final : public SignatureChecks {
 public:
  explicit RememberedChecks(SignatureChecks& inner) : inner_(inner) {}
  bool vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override;
  bool statement(const Statement& statement, const Hash256& network) override;
  bool entry(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
             const crypto::PublicKey& node, const Hash256& network) override;
  bool vector(const VectorClaim& claim, const crypto::PublicKey& node, const Hash256& network) override;
  bool evidence(const Evidence& evidence, const Hash256& network) override;
  bool heartbeat(const Heartbeat& heartbeat, const Hash256& network) override;

 private:
  // The first half of the hash of all that a check depends on.
  using Key = std::array<std::uint8_t, 16>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return load_le<std::uint64_t>(key.data()); }
  };
  template <class Check>
  bool remember(std::uint8_t kind, const Bytes& what, const Hash256& network, const Check& check);

  SignatureChecks& inner_;
  std::unordered_set<Key, KeyHash> young_, old_;
};

}  // namespace neuroshard::chain
