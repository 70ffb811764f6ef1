#include "core/chain/supposed.h"

#include "core/base/check.h"
#include "core/chain/committee.h"
#include "core/chain/detail/block_application.h"

namespace neuroshard::chain {

// Applies a block that nobody made: of the changes without the checks.
class Supposition {
 public:
  Supposition(const ChainRules& rules, const Registry& registry, std::uint32_t member)
      : application_(rules, registry, Hash256{}, registry.height() + 1, registry.time_ms(), nullptr),
        member_(registry.find(member)) {
    NS_CHECK(member_ != nullptr);
  }
  RegistryPtr with_offer(std::uint32_t memory_tiers) {
    application_.member(*member_).memory_tiers = memory_tiers;
    return application_.finish();
  }
  RegistryPtr left() {
    Statement leaves;
    leaves.node = member_->key;
    application_.apply(leaves, Leave{});
    application_.settle_wallets();
    application_.update_epoch(false);
    return application_.finish();
  }

 private:
  BlockApplication application_;
  const MemberRecord* const member_;
};

RegistryPtr with_offer(const ChainRules& rules, const Registry& registry, std::uint32_t member,
                       std::uint32_t memory_tiers) {
  return Supposition(rules, registry, member).with_offer(memory_tiers);
}

RegistryPtr without_member(const ChainRules& rules, const Registry& registry, std::uint32_t member) {
  return Supposition(rules, registry, member).left();
}

VotesWithout votes_without(const ChainRules& rules, const Registry& registry, std::uint32_t member) {
  const CommitteePtr committee = make_committee(rules, registry);
  VotesWithout votes;
  votes.all = committee->units();
  votes.others = votes.all - committee->units_of(member);
  while (!committee->is_quorum(votes.others + votes.lacking_at_once)) ++votes.lacking_at_once;
  while (!committee->is_stall_quorum(votes.others + votes.lacking_after_stall)) ++votes.lacking_after_stall;
  return votes;
}

}  // namespace neuroshard::chain
