// What follows from a close section's vectors: who is in the round, whose payload counts in which row, and
// what a leader must not leave out (docs/protocol/chain.md). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/chain/committee.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

// Member numbers, ascending, that are in the vectors of more than a third of the active units. A leader that
// has their contributions and leaves one out has an invalid block until view 3.
std::vector<std::uint32_t> due_contributors(const std::vector<Vector>& vectors, const Committee& committee);

// Whose delta a row takes, ascending by number: those in `contributions` whose payload more than half of the
// active units have, not expelled, with a valid number of tokens; voters, and candidates up to a quarter of
// the contributing voters' number, drawn by the beacon; vouched candidates all while fewer than four voters
// contribute. row_index: position among the round's rows.
std::vector<std::uint32_t> row_contributors(const ChainRules& rules, const Registry& registry,
                                            const Committee& committee, const CloseSection& close,
                                            std::size_t row_index);

// Most tokens that one member's contribution to a row may claim: a round's, times the rounds since the row's
// anchor last changed.
std::uint64_t most_row_tokens(const ChainRules& rules, const Registry& registry, std::uint32_t row,
                              std::uint64_t round);

// Wallets that become voters in the block that carries this round's result, in order: the due ones, within
// the round's quota. registry: with this round's contributions counted.
std::vector<std::uint32_t> due_admissions(const ChainRules& rules, const Registry& registry);
// How far a wallet is from a vote, for people.
struct AdmissionProgress {
  std::uint32_t contributions = 0, needed = 0;
  bool needs_voucher = false;
  bool can_vote_ever = true;
};
AdmissionProgress admission_progress(const ChainRules& rules, const Registry& registry,
                                     const WalletRecord& wallet);

}  // namespace neuroshard::chain
