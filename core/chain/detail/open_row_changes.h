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
  // A result of this round is wrong. If it was certified, the row returns to the anchor before it, and nothing that was
  // made of it counts.
  void take_back(const RowResult& result, std::uint64_t round);
  // The wallet attested it. Returns the wallets that are expelled for it, ascending.
  std::vector<std::uint32_t> strike(std::uint32_t wallet, const AttestedRow& attested);

 private:
  void insert(OpenRow row);

  const ChainRules& rules_;
  Registry& draft_;
};

}  // namespace neuroshard::chain
