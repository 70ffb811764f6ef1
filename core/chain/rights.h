// The consequences of a close section's vectors: who is in the round, whose payload counts in which row, and
// what a leader must not leave out (docs/protocol/chain.md). Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/chain/committee.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

// The units that list each member, added vector by vector.
class VectorTally {
 public:
  void add(const Vector& vector, std::uint32_t units);
  // Listed by more than a third of the committee's units, ascending.
  std::vector<std::uint32_t> due(const Committee& committee) const;

 private:
  std::vector<std::uint32_t> members_;  // ascending
  std::vector<std::uint64_t> units_;    // of each of them
};

// Member numbers, ascending, that are in the vectors of more than a third of the active units. A leader that
// has their contributions and leaves one out has an invalid block until view 3.
std::vector<std::uint32_t> due_contributors(const std::vector<Vector>& vectors, const Committee& committee);

// Of each row of the round the members whose delta it takes, ascending: those in `contributions` that hold the row,
// with tokens, whose payload more than half of the active units that hold the row have; nodes with a share of units (also outside the epoch's
// committee), and of the others up to a quarter of the contributing voter wallets' number, drawn by
// beacon_after(); those of vouched wallets all while fewer than four voters contribute. registry: before the
// block with the close.
std::vector<std::vector<std::uint32_t>> round_contributors(const ChainRules& rules, const Registry& registry,
                                                           const Committee& committee,
                                                           const CloseSection& close);
// Member numbers, ascending, whose contribution counts as certified: with tokens, and for some row more than
// half of the active units that hold it have the payload, whether or not the row takes it. Of a row that no active voter
// holds nobody can have the payload: there a holder with a trusted wallet counts, so that it becomes a voter.
std::vector<std::uint32_t> counted_contributors(const ChainRules& rules, const Registry& registry,
                                                const Committee& committee, const CloseSection& close);
// The beacon after the block with this close: of the reveals of committee members.
Hash256 beacon_after(const Registry& registry, const Committee& committee, const CloseSection& close);

// Most tokens that one member's contribution to a row may claim: a round's, times the rounds since the row's
// anchor last changed.
std::uint64_t most_row_tokens(const ChainRules& rules, const Registry& registry, std::uint32_t row,
                              std::uint64_t round);
// The norm that a delta for the row is clipped to where two to four contribute: twice the lower median of the row's last
// eight certified norms, times the turns of the row since its anchor last changed: rounds, or with fragments those that
// close the row. Nothing: there are not eight norms yet, or no such row.
std::optional<double> most_row_norm(const ChainRules& rules, const Registry& registry, std::uint32_t row,
                                    std::uint64_t round);

// Wallets that become voters in one round, at most.
constexpr std::size_t most_admissions(std::size_t voters) {
  return std::max<std::size_t>(1, voters / 16);
}
// Numbers of the wallets that become voters in the block that carries a round's result, in order: the due ones,
// within the round's quota most_admissions(). Vouched wallets come first, then more certified tokens, then the
// beacon's lot. registry: after the block with the close.
std::vector<std::uint32_t> due_admissions(const ChainRules& rules, const Registry& registry);
// A wallet's progress towards a vote, for people.
struct AdmissionProgress {
  std::uint32_t contributions = 0, needed = 0;
  bool needs_voucher = false;
  bool can_vote_ever = true;
};
AdmissionProgress admission_progress(const ChainRules& rules, const Registry& registry,
                                     const WalletRecord& wallet);

}  // namespace neuroshard::chain
