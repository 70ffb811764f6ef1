#include "core/chain/takeover.h"

#include "core/chain/rights.h"

namespace neuroshard::chain {

std::size_t wallets_to_freeze(std::size_t honest) {
  return (honest + 1) / 2;  // 3 · honest <= 2 · (honest + wallets)
}

std::size_t wallets_to_own(std::size_t honest) {
  return 2 * honest + 1;  // 3 · wallets > 2 · (honest + wallets)
}

std::uint64_t least_rounds_to_vote(const ChainRules& rules, std::size_t honest, std::size_t wallets) {
  if (wallets == 0) return 0;
  std::uint64_t rounds = honest < few_voters ? 1 : rules.admission_contributions;
  for (std::size_t voters = 1; voters < wallets; ++rounds) voters += most_admissions(honest + voters);
  return rounds;
}

}  // namespace neuroshard::chain
