#include "core/sim/round_world.h"

namespace neuroshard::sim {
namespace {

constexpr std::size_t known_beforehand = 3;

}  // namespace

RoundWorld::RoundWorld(RoundWorldOptions options, MakeModel make_model, MakeDistortion distortion,
                       MakeCaller caller)
    : Population(options, options.round, known_beforehand, true, std::move(make_model), std::move(distortion),
                 std::move(caller)),
      options_(std::move(options)) {
  if (!options_.found_alone)
    genesis_ = rounds::genesis_body(options_.round.rules.slot, initial_hash(), founders());
}

std::unique_ptr<rounds::RoundEndpoint> RoundWorld::make_node(std::size_t node, Host& host,
                                                             const rounds::RoundServices& services,
                                                             std::uint64_t seed) {
  rounds::RoundOptions options = options_.round;
  options.genesis = genesis_;
  return std::make_unique<rounds::RoundNode>(
      services, options, host.checkpoint, seed,
      [this, node](const rounds::RoundChain& chain, const rounds::Anchor& state, const rounds::StepResult*) {
        certified(node, chain, state);
      });
}

bool RoundWorld::dies_with(std::size_t node, ByteSpan post) {
  if (!watch_) return false;
  const auto item = rounds::decode_item(post);
  return item.ok() && watch_(node, *item);
}

void RoundWorld::forget_disk(std::size_t node) {
  hosts_.at(node)->disk.clear();
  hosts_.at(node)->checkpoint = {0, initial_, {}};
}

void RoundWorld::certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state) {
  Host& host = *hosts_[node];
  const rounds::RoundBody& body = chain.tip();
  const Hash256 genesis = chain.genesis();
  // What is on the disk must not change with what is in memory.
  const rounds::Anchor copy = std::make_shared<rounds::OuterState>(*state);
  keep_checkpoint(node, {body.round, copy, chain.tip_link()});
  if (!host.honest) return;
  const auto [at, first] = certificates_.try_emplace({genesis, body.round}, body);
  if (!first && !(at->second == body)) ++seen_.conflicts;
  if (first && body.round > 0)
    for (const rounds::RoundContributor& c : body.contributors)
      count_contribution(genesis, body.round, body.members.at(c.member).id, c.payload);
  count_state(genesis, body.round, *state, at->second.anchor);
  take_newest(body.round, copy);
}

double RoundWorld::agreement_rate() const {
  return share_holding([this](const rounds::RoundEndpoint& participant) -> const Hash256* {
    const auto* chain = participant.chain();
    const auto at = chain != nullptr ? certificates_.find({chain->genesis(), newest_}) : certificates_.end();
    return at == certificates_.end() ? nullptr : &at->second.anchor;
  });
}

rounds::RoundNode& RoundWorld::node(std::size_t node) {
  return static_cast<rounds::RoundNode&>(*hosts_.at(node)->node);
}
const rounds::RoundNode& RoundWorld::node(std::size_t node) const {
  return static_cast<const rounds::RoundNode&>(*hosts_.at(node)->node);
}

const rounds::RoundBody* RoundWorld::body(std::uint64_t round) const {
  for (const auto& [key, body] : certificates_)
    if (key.second == round) return &body;
  return nullptr;
}

}  // namespace neuroshard::sim
