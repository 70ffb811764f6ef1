#include "core/sim/level_world.h"

namespace neuroshard::sim {
namespace {

constexpr std::size_t known_beforehand = 3;

}  // namespace

LevelWorld::LevelWorld(LevelWorldOptions options, MakeModel make_model)
    : Population(options, options.round.one, known_beforehand, true, std::move(make_model), {}, {}),
      options_(std::move(options)) {
  if (!options_.found_alone) genesis_ = rounds::genesis_body(slot_, initial_hash(), founders());
}

// Nodes first: they may tell of a certificate while they end.
LevelWorld::~LevelWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

std::unique_ptr<rounds::RoundEndpoint> LevelWorld::make_node(std::size_t node, Host& host,
                                                             const rounds::RoundServices& services,
                                                             std::uint64_t seed) {
  rounds::LevelOptions options = options_.round;
  options.one.genesis = genesis_;
  return std::make_unique<rounds::LevelNode>(
      services, std::move(options), host.checkpoint, seed,
      [this, node](const rounds::RoundChain& chain, const rounds::Anchor& state, const rounds::StepResult*) {
        certified(node, chain, state);
      });
}

void LevelWorld::certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state) {
  const rounds::RoundBody& body = chain.tip();
  // What is on the disk must not change with what is in memory.
  const rounds::Anchor copy = std::make_shared<rounds::OuterState>(*state);
  keep_checkpoint(node, {body.round, copy, chain.tip_link()});
  const auto [at, first] =
      certificates_.try_emplace({chain.genesis(), body.round}, Certified{chain.tip_hash(), body.anchor});
  if (!first && at->second.tip != chain.tip_hash()) ++seen_.conflicts;
  if (first && body.round > 0) {
    for (const rounds::RoundContributor& c : body.contributors)
      count_contribution(chain.genesis(), body.round, body.members.at(c.member).id, c.payload);
    if (chain.tip_grouped()) ++grouped_rounds_;
    certificate_bytes_ = rounds::encode_link(chain.tip_link()).size();
  }
  count_state(chain.genesis(), body.round, *state, at->second.anchor);
  take_newest(body.round, copy);
}

double LevelWorld::agreement_rate() const {
  return share_holding([this](const rounds::RoundEndpoint& endpoint) -> const Hash256* {
    const auto* chain = endpoint.chain();
    const auto at = chain != nullptr ? certificates_.find({chain->genesis(), newest_}) : certificates_.end();
    return at == certificates_.end() ? nullptr : &at->second.anchor;
  });
}

rounds::LevelNode& LevelWorld::node(std::size_t node) {
  return static_cast<rounds::LevelNode&>(*hosts_.at(node)->node);
}
const rounds::LevelNode& LevelWorld::node(std::size_t node) const {
  return static_cast<const rounds::LevelNode&>(*hosts_.at(node)->node);
}

}  // namespace neuroshard::sim
