#include "core/rounds/fragment_nodes.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace neuroshard::rounds {
namespace {

// What keeps the training from going on, the worst first.
constexpr std::array phases_by_weight{RoundPhase::Repairing, RoundPhase::Joining,    RoundPhase::Provisional,
                                      RoundPhase::Agreeing,  RoundPhase::Collecting, RoundPhase::Training};

RoundPhase weightier(RoundPhase a, RoundPhase b) {
  for (const RoundPhase phase : phases_by_weight)
    if (a == phase || b == phase) return phase;
  return a;
}

void add_counters(RoundView& sum, const RoundView& more) {
  sum.certified += more.certified;
  sum.contributed += more.contributed;
  sum.left_out += more.left_out;
  sum.corruptions += more.corruptions;
  sum.fetched_anchors += more.fetched_anchors;
  sum.provisional += more.provisional;
  sum.failed_saves += more.failed_saves;
  sum.bytes_sent += more.bytes_sent;
  sum.bytes_received += more.bytes_received;
  sum.waiting += more.waiting;
  for (const net::NodeId& id : more.missing)
    if (std::find(sum.missing.begin(), sum.missing.end(), id) == sum.missing.end()) sum.missing.push_back(id);
  sum.evidence += more.evidence;
  for (std::size_t i = 0; i < sum.refused.size(); ++i) sum.refused[i] += more.refused[i];
}

}  // namespace

FragmentNodes::FragmentNodes(FragmentServices services, const LevelOptions& options,
                             std::vector<Fragment> fragments, std::vector<FragmentPart> parts,
                             std::uint64_t seed, FragmentCertified certified)
    : fragments_(std::move(fragments)), anchors_(fragments_.size()) {
  NS_CHECK(!fragments_.empty() && fragments_.size() == parts.size());
  for (std::size_t f = 0; f < fragments_.size(); ++f) {
    LevelOptions own = options;
    own.one.rules.slot = fragments_[f].slot;
    own.one.rules.values = fragments_[f].count;
    own.one.first_steps = fragments_[f].first_steps;
    if (fragments_.size() > 1) {
      own.one.sync = RoundSync::Delayed;
      own.one.shares_training = true;
      own.one.ready_to_join = [this] { return holds_all(); };
      own.one.may_fetch_state = [this] {
        return std::none_of(nodes_.begin(), nodes_.end(),
                            [](const auto& node) { return node->fetches_state(); });
      };
    }
    FragmentPart& part = parts[f];
    if (part.genesis) own.one.genesis = std::move(part.genesis);
    nodes_.push_back(std::make_unique<LevelNode>(
        RoundServices{services.key, services.caller, services.peers, services.executor, services.clock,
                      *part.learner, *part.store, services.work, services.logger},
        std::move(own), std::move(part.known), seed + (std::uint64_t{f} << 32),
        [this, f, certified](const RoundChain& chain, const Anchor& state, const StepResult* step) {
          anchors_.add(f, chain.tip().round, chain.tip().anchor);
          certified(f, chain, state, step);
        }));
  }
}

FragmentNodes::~FragmentNodes() = default;

void FragmentNodes::start() {
  for (const auto& node : nodes_) node->start();
}

void FragmentNodes::progressed() {
  for (const auto& node : nodes_) node->progressed();
}

void FragmentNodes::leave() {
  for (const auto& node : nodes_) node->leave();
}

void FragmentNodes::rejoin() {
  for (const auto& node : nodes_) node->rejoin();
}

bool FragmentNodes::left() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->left(); });
}

bool FragmentNodes::needed() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->needed(); });
}

void FragmentNodes::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                            const net::Respond& respond) {
  const auto slot = nodes_.size() == 1 ? std::nullopt : slot_of_call(method, request);
  // What can't be read is refused by whichever node in the usual words.
  if (!slot) return nodes_.front()->on_call(from, method, request, respond);
  for (std::size_t f = 0; f < nodes_.size(); ++f)
    if (fragments_[f].slot == *slot) return nodes_[f]->on_call(from, method, request, respond);
  respond(make_error(ErrorCode::NotFound, "this network's model has no such fragment"));
}

bool FragmentNodes::holds_all() const {
  return nodes_.size() == fragments_.size() &&
         std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->state() != nullptr; });
}

bool FragmentNodes::begun() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->chain() != nullptr; });
}

RoundView FragmentNodes::view() const {
  RoundView all = nodes_.front()->view();
  for (std::size_t f = 1; f < nodes_.size(); ++f) {
    const RoundView one = nodes_[f]->view();
    add_counters(all, one);
    all.phase = weightier(all.phase, one.phase);
    all.round = std::min(all.round, one.round);
    all.tokens = std::max(all.tokens, one.tokens);
    all.members = std::min(all.members, one.members);
    all.groups = std::max(all.groups, one.groups);
    all.member = all.member && one.member;
    all.view = std::max(all.view, one.view);
  }
  if (nodes_.size() > 1) {
    all.anchor = anchors_.of_all(all.round).value_or(Hash256{});
    all.own_anchor = own_anchor(all.round).value_or(Hash256{});
  }
  return all;
}

bool FragmentNodes::agrees() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    const RoundView view = node->view();
    return node->chain() != nullptr && view.own_anchor == view.anchor;
  });
}

std::uint64_t FragmentNodes::held_round() const {
  std::uint64_t held = nodes_.front()->state_round();
  for (const auto& node : nodes_) held = std::min(held, node->state_round());
  return held;
}

std::optional<Hash256> FragmentNodes::own_anchor(std::uint64_t round) const {
  std::vector<Hash256> anchors;
  for (std::size_t f = 0; f < nodes_.size(); ++f) {
    // An older one was the certified one when it was taken.
    const auto anchor = nodes_[f]->state_round() == round ? std::optional(nodes_[f]->view().own_anchor)
                                                          : anchors_.of(f, round);
    if (!anchor) return std::nullopt;
    anchors.push_back(*anchor);
  }
  return joint_anchor(round, anchors);
}

}  // namespace neuroshard::rounds
