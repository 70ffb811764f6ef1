#include "core/sim/grouped_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/outer/attack.h"
#include "core/sim/grouped_world.h"
#include "core/sim/round_liar.h"
#include "core/sim/scenario_lies.h"
#include "core/sim/soft_model.h"

namespace neuroshard::sim {
namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr Duration step_time = std::chrono::milliseconds(200);
constexpr std::size_t most_that_check_signatures = 1000;  // each for itself; beyond, one for all
constexpr std::size_t looked_at = 48;  // deltas whose cosines are taken; honest ones that liars know of

class GroupedRun {
 public:
  explicit GroupedRun(const ScenarioOptions& options) : options_(options) {}
  Expected<ScenarioResult> run();

 private:
  GroupedWorldOptions world_options() const;
  void make_world();
  RoundTrainer::Distortion distortion(std::size_t node);
  void forge_round(std::uint64_t round);
  bool liar(std::size_t node) const { return node >= options_.nodes - liars_; }
  void round(std::uint64_t number);
  void happen(std::uint64_t number);
  void kill_group();
  void revive();
  void measure_cosine();
  void finish();
  void count_refused();
  void expect(bool holds, std::string_view what) {
    if (!holds) result_.broken.emplace_back(what);
  }
  Duration round_time() const { return options_.inner_steps * step_time; }
  bool is(std::string_view name) const { return options_.name == name; }

  const ScenarioOptions options_;
  std::shared_ptr<const outer::SoftTask> task_;
  outer::SoftLearnerOptions learner_;
  std::size_t liars_ = 0;
  std::optional<outer::Attack> attack_;
  std::optional<Lie> lie_;
  Overheard heard_;
  outer::AggregationOptions rule_;
  std::uint64_t forged_round_ = 0;
  std::vector<outer::ForgedDelta> forged_;
  std::optional<GroupedWorld> world_;
  std::vector<std::size_t> down_;
  std::uint64_t killed_group_in_ = 0;
  ScenarioResult result_;
};

GroupedWorldOptions GroupedRun::world_options() const {
  GroupedWorldOptions o;
  o.seed = options_.seed;
  o.nodes = options_.nodes;
  o.shared = result_.shared;
  o.shared_signatures = options_.nodes > most_that_check_signatures;
  o.disks = is("churn") || is("leader-killed") || is("group-killed");
  if (is("late-joiner")) o.founders = options_.nodes - 1;
  o.network.loss = options_.loss + (is("lossy") ? 0.3 : 0.0);
  o.initial = task_->initial_weights();
  o.round.rules.network.fill(0x5a);
  o.round.rules.codec = options_.codec;
  o.round.rules.values = task_->parameters();
  o.round.rules.inner_steps = options_.inner_steps;
  o.round.rules.most_tokens = std::uint64_t{options_.inner_steps} * learner_.batch * 2;
  o.round.outer.codec = options_.codec;
  o.round.outer.aggregation = rule_;
  o.round.first_deadline = 3 * round_time();
  o.round.provisional_after = 4 * round_time() + 20 * second;
  o.round.grace = 2 * second;
  o.round.group_wait = 5 * second;
  o.round.group = {6 * second, 20 * second};
  // A leader fetches all aggregates, then all others do.
  o.round.fetches = std::max<std::size_t>(8, result_.groups / 8);
  o.round.top = {(20 + static_cast<int>(result_.groups) / 20) * second, 90 * second};
  o.trainer.inner_steps = options_.inner_steps;
  o.trainer.step_time = step_time;
  o.trainer.tokens_per_step = learner_.batch;
  o.trainer.codec = options_.codec;
  if (options_.codec.codec == outer::Codec::TopK) {
    o.trainer.error_feedback_beta = 0.95f;
    o.round.outer.mu = 0;
    o.round.outer.lr = 1.0f;
  }
  o.trainer.most_provisional_steps = 4 * options_.inner_steps;
  return o;
}

// Liars know what honest nodes are about to send, and send their best answer to it: one set a round.
void GroupedRun::forge_round(std::uint64_t round) {
  if (round == forged_round_) return;
  forged_round_ = round;
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes && deltas.size() < looked_at; ++i) {
    if (liar(i) || !world_->running(i)) continue;
    deltas.push_back(world_->trainer(i).delta_now());
    if (deltas.back().empty()) deltas.pop_back();
  }
  std::vector<Span<const float>> honest;
  for (const auto& delta : deltas) honest.emplace_back(delta);
  forged_.clear();
  if (honest.empty()) return;
  Rng rng(options_.seed * 31 + round);
  // As many as are among that many honest ones: all liars repeat those.
  const std::size_t liars = std::max<std::size_t>(1, liars_ * honest.size() / (options_.nodes - liars_));
  forged_ =
      outer::forge(*attack_, honest, liars, std::uint64_t{options_.inner_steps} * learner_.batch, rule_, rng);
}

RoundTrainer::Distortion GroupedRun::distortion(std::size_t node) {
  if (!attack_ || !liar(node)) return nullptr;
  return [this, index = node - (options_.nodes - liars_)](std::uint64_t round, Span<float> delta,
                                                          std::uint64_t* tokens) {
    forge_round(round);
    if (forged_.empty()) return;
    const outer::ForgedDelta& forged = forged_[index % forged_.size()];
    std::copy(forged.delta.begin(), forged.delta.end(), delta.begin());
    *tokens = forged.tokens;
  };
}

void GroupedRun::make_world() {
  world_.emplace(
      world_options(),
      [this](std::size_t node, std::uint64_t lives) -> std::unique_ptr<LocalModel> {
        return std::make_unique<SoftModel>(task_, node, learner_, lives * 1'000'000);
      },
      [this](std::size_t node) { return distortion(node); },
      [this](std::size_t node, net::PeerCaller& out,
             const crypto::KeyPair& key) -> std::unique_ptr<net::PeerCaller> {
        if (!lie_ || !liar(node)) return nullptr;
        Hash256 network{};
        network.fill(0x5a);
        return std::make_unique<LyingCaller>(*lie_, out, key, network, options_.codec, task_->parameters(),
                                             heard_);
      });
  world_->world().stop_with(options_.stop);
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (liar(i)) world_->set_honest(i, false);
  if (lie_ || is("leader-killed"))
    world_->watch([this](std::size_t from, ByteSpan bytes) {
      if (lie_ && liar(from)) return false;
      const auto post = rounds::decode_grouped_post(bytes);
      if (!post.ok()) return false;
      if (const auto* group = std::get_if<rounds::GroupPost>(&*post); group && lie_) {
        const auto item = rounds::decode_item(group->item);
        const auto* contribution = item.ok() ? std::get_if<rounds::ContributionPost>(&*item) : nullptr;
        if (contribution == nullptr) return false;
        auto& posts = heard_.contributions[contribution->contribution.round];
        if (posts.empty() || posts.back().contribution != contribution->contribution)
          posts.push_back(*contribution);
      }
      // The leader goes when its proposal has left for some.
      const auto* proposal = std::get_if<rounds::GroupedProposal>(&*post);
      if (!is("leader-killed") || proposal == nullptr || !proposal->relay || !down_.empty()) return false;
      down_.push_back(from);
      return true;
    });
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!is("late-joiner") || i + 1 < options_.nodes) world_->start(i);
}

void GroupedRun::revive() {
  for (const std::size_t node : down_)
    if (!world_->running(node)) world_->start(node);
  down_.clear();
}

// All members of one sub-group at once, in the middle of its round.
void GroupedRun::kill_group() {
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (world_->running(i)) {
      const rounds::Deal& deal = world_->node(i).deal();
      for (const rounds::RoundMember& member : *deal.groups[1]) down_.push_back(world_->index_of(member.id));
      break;
    }
  for (const std::size_t node : down_) world_->kill(node);
}

// What happens in the middle of a round's training.
void GroupedRun::happen(std::uint64_t number) {
  GroupedWorld& w = *world_;
  const std::size_t last = options_.nodes - 1;
  if (is("churn")) {
    // One in twenty is away in every second round: killed in mid-round, back in the next.
    if (!down_.empty()) {
      revive();
    } else {
      for (std::size_t i = number % 20; i < options_.nodes; i += 20) down_.push_back(i);
      for (const std::size_t node : down_) w.kill(node);
    }
  }
  if (is("leader-killed")) revive();
  if (is("group-killed")) {
    if (!down_.empty()) revive();
    if (number == 3) {
      killed_group_in_ = w.newest_round() + 1;
      kill_group();
    }
  }
  if (is("partition") && (number == 3 || number == 4))
    for (std::size_t i = 0; i < options_.nodes; ++i) w.set_part(i, number == 3 && i % 2 == 1 ? 1 : 0);
  if (is("late-joiner") && number == 3) w.start(last);
  if (is("corrupted-replica") && number == 3) w.corrupt(last);
}

void GroupedRun::measure_cosine() {
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes && deltas.size() < looked_at; ++i)
    if (!liar(i) && world_->running(i)) deltas.push_back(world_->trainer(i).delta_now());
  result_.delta_cosine = mean_cosine(deltas);
}

void GroupedRun::round(std::uint64_t number) {
  GroupedWorld& w = *world_;
  const MonotonicTime begun = w.world().now();
  w.world().run_for(round_time() / 2);
  happen(number);
  if (number == 1) {
    w.world().run_for(round_time() / 2 - step_time);
    measure_cosine();
  }
  if (is("partition") && number == 3) {
    // Neither half is a quorum: a while of it, then together again.
    const std::uint64_t before = w.newest_round();
    w.world().run_for(8 * round_time() + 60 * second);
    expect(w.newest_round() == before, "half of the members certified a round");
    happen(4);
  }
  if (!w.run_to_round(number, 40 * round_time() + 300 * second) && result_.broken.empty())
    expect(false, fmt::format("round {} was not certified on all honest nodes within {:.0f} virtual seconds",
                              number, to_seconds(w.world().now() - begun)));
  if (w.newest_anchor()) result_.losses.push_back(task_->held_out_loss(w.newest_anchor()->weights));
}

void GroupedRun::count_refused() {
  std::array<std::uint64_t, static_cast<std::size_t>(rounds::Verdict::Count_)> refused{};
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (liar(i) || !world_->running(i)) continue;
    const auto view = world_->node(i).view();
    for (std::size_t k = 0; k < refused.size(); ++k) refused[k] += view.refused[k];
  }
  for (std::size_t k = 0; k < refused.size(); ++k) {
    result_.refused += refused[k];
    if (refused[k] > 0)
      result_.refused_by.emplace_back(rounds::to_string(static_cast<rounds::Verdict>(k)), refused[k]);
  }
}

void GroupedRun::finish() {
  GroupedWorld& w = *world_;
  const RoundWorldSeen seen = w.seen();
  result_.rounds = seen.rounds;
  result_.conflicts = seen.conflicts;
  result_.counted_twice = seen.twice;
  result_.worst_agreement = seen.worst_agreement;
  result_.hash_agreement_rate = w.agreement_rate();
  result_.contributions = seen.contributions;
  result_.provisional = seen.provisional;
  result_.corruptions = seen.corruptions;
  result_.anchors_fetched = seen.fetched;
  result_.evidence = seen.evidence;
  result_.last_loss = result_.losses.empty() ? result_.first_loss : result_.losses.back();
  result_.liars = liars_;
  result_.certificate_bytes = w.certificate_bytes();
  count_refused();
  std::size_t honest = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!liar(i) && w.running(i))
      result_.waiting_share += (w.trainer(i).waiting_share() - result_.waiting_share) / double(++honest);
  std::set<net::NodeId> lying;
  for (std::size_t i = options_.nodes - liars_; i < options_.nodes; ++i) lying.insert(w.id(i));
  for (std::uint64_t r = 1; r <= seen.rounds; ++r) {
    const rounds::GroupedBody* body = w.body(r);
    if (body == nullptr) continue;
    result_.group_results += body->groups.size();
    if (r == killed_group_in_)
      expect(
          std::none_of(body->groups.begin(), body->groups.end(), [](const auto& g) { return g.group == 1; }),
          "the sub-group that was killed is in the certificate");
    for (const auto& group : body->groups)
      for (const auto& c : group.certificate.body.contributors)
        result_.liars_counted += lying.count(group.certificate.body.members[c.member].id);
  }
  const NetworkCounters& net = w.network().counters();
  result_.messages = net.calls;
  result_.bytes = net.bytes;
  result_.lost = net.lost;
  result_.events = w.world().events();
  result_.virtual_seconds = to_seconds(w.world().now().time_since_epoch());

  expect(result_.conflicts == 0, "two certificates of one round differ");
  expect(result_.counted_twice == 0, "a contribution was counted twice");
  expect(result_.worst_agreement == 1, "an honest node took another anchor than the certified one");
  expect(result_.hash_agreement_rate == 1, "honest nodes end with different anchors");
  expect(std::isfinite(result_.last_loss) && result_.last_loss < result_.first_loss, "nothing was learned");
  if (is("partition")) expect(result_.provisional > 0, "nobody noticed the cut");
  if (is("corrupted-replica"))
    expect(result_.corruptions >= 1 && result_.anchors_fetched >= 1,
           "the broken anchor was not found and repaired");
  // Who tells nearly all of eight fellows the same has their quorum before the evidence: one payload counts
  // then.
  if (lie_ == Lie::TwoPayloads) expect(result_.evidence > 0, "two payloads of one sender left no evidence");
  if (lie_ == Lie::Replay || lie_ == Lie::StaleBase) expect(result_.refused > 0, "nothing was refused");
}

Expected<ScenarioResult> GroupedRun::run() {
  attack_ = attack_of(options_.name);
  lie_ = lie_of(options_.name);
  if (attack_ || lie_) liars_ = options_.liars != 0 ? options_.liars : options_.nodes / 8;
  result_.shared = options_.nodes >= shared_from;
  result_.groups = rounds::group_count(options_.nodes);
  if (is("corrupted-replica") && result_.shared)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the scenario \"corrupted-replica\" takes up to {} nodes: beyond, nodes "
                                  "share what they derive alike",
                                  shared_from - 1));
  if (is("group-killed") && result_.groups < 4)
    return make_error(
        ErrorCode::InvalidArgument,
        "the scenario \"group-killed\" takes 32 nodes or more: of three sub-groups none can be missing");
  outer::SoftTaskOptions task;
  task.seed = options_.seed;
  NS_ASSIGN_OR_RETURN(task_, outer::SoftTask::make(task));
  if (options_.plain_mean) rule_.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  rule_.sparse = options_.codec.codec == outer::Codec::TopK;
  make_world();
  result_.first_loss = task_->held_out_loss(task_->initial_weights());
  if (is("slow-node")) {
    world_->kill(options_.nodes - 1);
    world_->set_step_time(options_.nodes - 1, 4 * step_time);
    world_->start(options_.nodes - 1);
  }
  for (std::uint64_t number = 1;
       number <= options_.rounds && result_.broken.empty() && !options_.stop.cancelled(); ++number)
    round(number);
  if (!down_.empty()) {
    revive();
    world_->run_to_round(world_->newest_round() + 1, 40 * round_time() + 300 * second);
  }
  // Whoever is a message behind: between two rounds all hold the same.
  world_->world().run_until([this] { return world_->agreement_rate() == 1; },
                            world_->world().now() + 2 * round_time() + 10 * second);
  if (options_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
  finish();
  return std::move(result_);
}

}  // namespace

Expected<ScenarioResult> run_grouped_scenario(const ScenarioOptions& options) {
  return GroupedRun(options).run();
}

}  // namespace neuroshard::sim
