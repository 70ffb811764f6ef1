// The beacon: one random value per round that nobody chooses (docs/protocol/chain.md). Every member commits
// to the tip of a hash chain when it registers; each contribution reveals the value before. The next beacon
// hashes the reveals of the active voters. A voter can bias it by one bit a round, at the price of its round.
//
// Pure. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/chain/statements.h"
#include "core/net/node_id.h"

namespace neuroshard::chain {

inline constexpr std::uint32_t beacon_chain_length = 65'536;

// A member's own chain, recomputed from a secret seed; keeps a value every 256 steps (8 KiB).
class BeaconChain {
 public:
  // length: 1 … beacon_chain_length. Cost: `length` hashes.
  BeaconChain(const Hash256& seed, std::uint64_t first_round, std::uint32_t length = beacon_chain_length);
  BeaconCommitment commitment() const;
  // Exhausted before first_round, and after the last round of the chain.
  Expected<Hash256> reveal(std::uint64_t round) const;

 private:
  std::vector<Hash256> kept_;
  Hash256 tip_{};
  std::uint64_t first_round_ = 0;
  std::uint32_t length_ = 0;
};

// Whether `value` is round `round`'s of this commitment. known, known_round: a value of the same commitment that
// held before (0: none), so that only the gap is hashed. Cost: at most 65,536 hashes.
bool reveal_holds(const BeaconCommitment& commitment, std::uint64_t round, const Hash256& value,
                  const Hash256& known, std::uint64_t known_round);

// The number of hashes that this check takes; 0: none, the value does not hold.
std::uint64_t reveal_cost(const BeaconCommitment& commitment, std::uint64_t round, std::uint64_t known_round);

struct Reveal {
  net::NodeId id{};
  Hash256 value{};
};
// reveals: of active voters, ascending by id. Without any, the beacon still moves on.
Hash256 next_beacon(const Hash256& beacon, std::uint64_t round, const std::vector<Reveal>& reveals);
// A number for ordering by lot: hash(purpose, beacon, id).
Hash256 lot(const char* purpose, const Hash256& beacon, const net::NodeId& id);

}  // namespace neuroshard::chain
