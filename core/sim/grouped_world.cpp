#include "core/sim/grouped_world.h"

#include "core/base/check.h"
#include "core/sim/shared_commons.h"

namespace neuroshard::sim {

GroupedWorld::GroupedWorld(GroupedWorldOptions options, MakeModel make_model, MakeDistortion distortion,
                           MakeCaller caller)
    : Population(options, options.round, 0, options.disks, std::move(make_model), std::move(distortion),
                 std::move(caller)),
      options_(std::move(options)) {
  if (options_.shared)
    commons_ = std::make_unique<SharedCommons>(network_id_, options_.least, options_.shared_signatures);
  else
    commons_ = std::make_unique<rounds::GroupedCommons>(network_id_, options_.least);
  genesis_ = rounds::chain_base(slot_, initial_hash(), founders());
}

// Nodes first: they use the commons.
GroupedWorld::~GroupedWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

std::unique_ptr<rounds::RoundEndpoint> GroupedWorld::make_node(std::size_t node, Host& host,
                                                               const rounds::RoundServices& services,
                                                               std::uint64_t seed) {
  rounds::GroupedOptions options = options_.round;
  options.base = genesis_;
  return std::make_unique<rounds::GroupedNode>(
      services, *commons_, options, host.checkpoint, seed,
      [this, node](const rounds::RoundChain& chain, const rounds::Anchor& state, const rounds::StepResult*) {
        certified(node, chain, state);
      });
}

void GroupedWorld::corrupt(std::size_t node) {
  NS_CHECK(!options_.shared);
  flip_bits(node);
}

void GroupedWorld::certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state) {
  const rounds::GroupedLinkPtr link = chain.tip_grouped();
  if (!link) return;  // the beginning
  const std::uint64_t round = link->body->round;
  // What is on the disk must not change with what is in memory.
  const rounds::Anchor copy = options_.shared ? state : std::make_shared<rounds::OuterState>(*state);
  if (options_.disks) keep_checkpoint(node, {round, copy, chain.tip_link()});
  if (!hosts_[node]->honest) return;
  const auto [at, first] = links_.try_emplace(round, link);
  if (!first && at->second->tip != link->tip) ++seen_.conflicts;
  if (first) {
    certificate_bytes_ = link->content->size() + 66 * link->certificate.signatures.size();
    for (const rounds::GroupResult& result : link->body->groups) {
      const rounds::RoundBody& group = result.certificate.body;
      for (const rounds::RoundContributor& c : group.contributors)
        count_contribution(genesis_.tip, round, group.members[c.member].id, c.payload);
    }
  }
  count_state(genesis_.tip, round, *state, at->second->body->anchor);
  take_newest(round, copy);
}

double GroupedWorld::agreement_rate() const {
  const auto newest = links_.find(newest_);
  const Hash256* const anchor = newest == links_.end() ? nullptr : &newest->second->body->anchor;
  return share_holding([anchor](const rounds::RoundEndpoint&) { return anchor; });
}

const rounds::GroupedNode& GroupedWorld::node(std::size_t node) const {
  return static_cast<const rounds::GroupedNode&>(*hosts_.at(node)->node);
}

const rounds::GroupedBody* GroupedWorld::body(std::uint64_t round) const {
  const auto at = links_.find(round);
  return at == links_.end() ? nullptr : at->second->body.get();
}

}  // namespace neuroshard::sim
