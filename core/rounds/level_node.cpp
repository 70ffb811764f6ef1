#include "core/rounds/level_node.h"

#include <fmt/format.h>

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t rounds_stayed = 2;

LevelOptions completed(LevelOptions options) {
  static_cast<ParticipantOptions&>(options.many) = options.one;
  return options;
}

}  // namespace

LevelNode::LevelNode(RoundServices services, LevelOptions options, KnownState known, std::uint64_t seed,
                     RoundCertified certified)
    : services_(services),
      options_(completed(std::move(options))),
      seed_(seed),
      on_certified_(std::move(certified)),
      commons_(options_.one.rules.network, 0, options_.one.group_members) {
  make(false, std::move(known));
}

LevelNode::~LevelNode() = default;

// What was kept says of how many members the next round is; one of one group reads it in any case.
void LevelNode::start() {
  node_->start();
}

void LevelNode::make(bool grouped, KnownState known) {
  const auto certified = [this](const RoundChain& chain, const Anchor& state, const StepResult* step) {
    if (before_ && chain.tip().round >= changed_at_ + rounds_stayed) before_.reset();
    if (on_certified_) on_certified_(chain, state, step);
  };
  const std::uint64_t seed = seed_ + changes_;
  if (grouped) {
    one_ = nullptr;
    node_ =
        std::make_unique<GroupedNode>(services_, commons_, options_.many, std::move(known), seed, certified);
  } else {
    auto one = std::make_unique<RoundNode>(services_, options_.one, std::move(known), seed, certified);
    one_ = one.get();
    node_ = std::move(one);
  }
  node_->when_unfit([this] { change_level(); });
}

void LevelNode::change_level() {
  const bool grouped = one_ != nullptr;
  RoundOngoing ongoing = node_->hand_over();
  changed_at_ = ongoing.chain_->tip().round;
  ++changes_;
  services_.logger.info(
      "rounds", fmt::format("round {} has {} members: {}", changed_at_ + 1, ongoing.chain_->members().size(),
                            grouped ? "they are dealt into sub-groups" : "they are one group"));
  before_ = std::move(node_);
  make(grouped, {});
  node_->start(std::move(ongoing));
}

bool LevelNode::left() const {
  return node_->left() && !(before_ && before_->still_telling());
}

void LevelNode::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                        const net::Respond& respond) {
  if (method == net::Method::RoundFetch && before_ && !node_->on_fetch(request).ok())
    respond(before_->on_fetch(request));
  else
    node_->on_call(from, method, request, respond);
}

}  // namespace neuroshard::rounds
