// Changes of the open rows and strikes of a registry that is being made (open_row.h).
//
// One object, one draft, which outlives it. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/chain/attestation.h"
#include "core/chain/committee.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

class OpenRowChanges {
 public:
  OpenRowChanges(const ChainRules& rules, Registry& draft) : rules_(rules), draft_(draft) {}

  // The round is closed in the draft. before: the registry of the block before; committee: of the block.
  void open(const Registry& before, const Committee& committee, const CloseSection& close);
  // The draft's rows have the result.
  void note(const ResultSection& result);
  // The round is closed in the draft, and open() comes after it: results of the second round before it that too many of their
  // checkers say are withheld are taken back.
  void take_back_withheld(const CloseSection& close);
  // A result of this round is wrong. If it was certified, it is taken back.
  void take_back_wrong(const RowResult& result, std::uint64_t round);
  // The wallet attested it. Returns the wallets that are expelled for it, ascending.
  std::vector<std::uint32_t> strike(std::uint32_t wallet, const AttestedRow& attested);

 private:
  // The row returns to the anchor before the round's result, and nothing that was made of it counts.
  void take_back(std::uint32_t row, std::uint64_t round);
  void insert(OpenRow row);

  const ChainRules& rules_;
  Registry& draft_;
};

}  // namespace neuroshard::chain
