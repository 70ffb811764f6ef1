// The members whose contributions a round takes. Anybody can register keys, and all of them could contribute; a block
// would have no room for the close. So the first nodes of a wallet with a vote or a voucher may always contribute, as
// many as can vote. Of all other members a round takes `most`: those of trusted wallets first, then by the lot of the
// beacon that the opening block shows.
//
// Each node draws by itself. Two nodes that drew from different blocks of one round could differ in few members, which
// is like a contribution that reached only some voters. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/chain/registry.h"

namespace neuroshard::rounds {

class ContributorLot {
 public:
  ContributorLot() = default;  // takes everybody
  // registry: of a block of the round before its close. After the close it takes everybody, as the close names those
  // that are in the round.
  ContributorLot(const chain::Registry& registry, std::size_t most);

  bool takes(std::uint32_t member) const;
  // Members that the round does not take.
  std::size_t left_out() const { return left_out_.size(); }

 private:
  std::vector<std::uint32_t> left_out_;  // ascending
};

}  // namespace neuroshard::rounds
