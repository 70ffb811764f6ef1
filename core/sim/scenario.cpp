#include "core/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/outer/attack.h"
#include "core/rounds/dealing.h"
#include "core/sim/grouped_scenario.h"
#include "core/sim/round_liar.h"
#include "core/sim/round_world.h"
#include "core/sim/scenario_lies.h"
#include "core/sim/soft_model.h"

namespace neuroshard::sim {
namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr Duration step_time = std::chrono::milliseconds(200);

class Run {
 public:
  explicit Run(const ScenarioOptions& options) : options_(options) {}
  Expected<ScenarioResult> run();

 private:
  RoundWorldOptions world_options() const;
  void make_world();
  RoundTrainer::Distortion distortion(std::size_t node);
  void forge_round(std::uint64_t round);
  bool liar(std::size_t node) const { return node >= options_.nodes - liars_; }
  void play();
  void round(std::uint64_t round);
  void before_round(std::uint64_t round);
  void finish();
  void expect(bool holds, std::string_view what) {
    if (!holds) result_.broken.emplace_back(what);
  }
  void measure_cosine();
  Duration round_time() const { return options_.inner_steps * step_time; }

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
  std::optional<RoundWorld> world_;
  std::optional<std::size_t> down_;
  ScenarioResult result_;
};

RoundWorldOptions Run::world_options() const {
  RoundWorldOptions o;
  o.seed = options_.seed;
  o.nodes = options_.nodes;
  if (options_.name == "late-joiner") o.founders = options_.nodes - 1;
  o.network.loss = options_.loss + (options_.name == "lossy" ? 0.3 : 0.0);
  o.initial = task_->initial_weights();
  o.round.rules.network.fill(0x5a);
  o.round.rules.codec = options_.codec;
  o.round.rules.values = task_->parameters();
  o.round.rules.inner_steps = options_.inner_steps;
  o.round.rules.most_tokens = std::uint64_t{options_.inner_steps} * learner_.batch * 2;
  o.round.sync = options_.sync;
  o.round.outer.codec = options_.codec;
  o.round.outer.aggregation = rule_;
  o.round.first_deadline = 3 * round_time();
  o.round.provisional_after = 2 * round_time();
  o.round.grace = 2 * second;
  o.round.agreement = {6 * second, 20 * second};
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

// Liars know what the honest are about to send, and send their best answer to it: one set a round.
void Run::forge_round(std::uint64_t round) {
  if (round == forged_round_) return;
  forged_round_ = round;
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (liar(i) || !world_->running(i)) continue;
    deltas.push_back(world_->trainer(i).delta_now());
    if (deltas.back().empty()) deltas.pop_back();
  }
  std::vector<Span<const float>> honest;
  for (const auto& delta : deltas) honest.emplace_back(delta);
  forged_.clear();
  if (honest.empty()) return;
  Rng rng(options_.seed * 31 + round);
  forged_ = outer::forge(*attack_, honest, liars_, std::uint64_t{options_.inner_steps} * learner_.batch,
                         rule_, rng);
}

RoundTrainer::Distortion Run::distortion(std::size_t node) {
  if (!attack_ || !liar(node)) return nullptr;
  return [this, index = node - (options_.nodes - liars_)](std::uint64_t round, Span<float> delta,
                                                          std::uint64_t* tokens) {
    forge_round(round);
    if (forged_.empty()) return;
    std::copy(forged_[index].delta.begin(), forged_[index].delta.end(), delta.begin());
    *tokens = forged_[index].tokens;
  };
}

void Run::make_world() {
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
  world_->watch([this](std::size_t from, const rounds::RoundItem& item) {
    if (const auto* post = std::get_if<rounds::ContributionPost>(&item); post && lie_ && !liar(from)) {
      auto& posts = heard_.contributions[post->contribution.round];
      if (posts.empty() || posts.back().contribution != post->contribution) posts.push_back(*post);
    }
    // The leader goes when its first proposal leaves: some have it, others don't.
    const bool proposes = std::holds_alternative<rounds::ProposalPost>(item);
    if (options_.name != "leader-killed" || !proposes || down_) return false;
    down_ = from;
    return true;
  });
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (options_.name != "late-joiner" || i + 1 < options_.nodes) world_->start(i);
}

// What happens in the middle of a round's training.
void Run::before_round(std::uint64_t round) {
  RoundWorld& w = *world_;
  const std::size_t last = options_.nodes - 1;
  if (options_.name == "churn") {
    // One is away in every second round: killed in mid-round, back in the next.
    if (down_) {
      w.start(*down_);
      down_.reset();
    } else {
      down_ = (round / 2) % options_.nodes;
      w.kill(*down_);
    }
  }
  if (options_.name == "partition" && (round == 4 || round == 5))
    for (std::size_t i = 0; i < options_.nodes; ++i) w.set_part(i, round == 4 && i % 2 == 1 ? 1 : 0);
  if (options_.name == "late-joiner" && round == 4) w.start(last);
  if (options_.name == "corrupted-replica" && round == 5) w.corrupt(last);
  if (options_.name == "leader-killed" && down_ && !w.running(*down_)) {
    w.start(*down_);
    down_.reset();
  }
}

void Run::measure_cosine() {
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!liar(i) && world_->running(i)) deltas.push_back(world_->trainer(i).delta_now());
  result_.delta_cosine = mean_cosine(deltas);
}

void Run::round(std::uint64_t number) {
  RoundWorld& w = *world_;
  const MonotonicTime begun = w.world().now();
  w.world().run_for(round_time() / 2);
  before_round(number);
  if (number == 1) {
    w.world().run_for(round_time() / 2 - step_time);
    measure_cosine();
  }
  Duration limit = 40 * round_time();
  if (options_.name == "partition" && number == 4) {
    // Neither half is a quorum: a while of it, then together again.
    const std::uint64_t before = w.newest_round();
    w.world().run_for(4 * round_time());
    const bool none = w.newest_round() == before;
    before_round(5);
    if (!none) expect(false, "half of the members certified a round");
  }
  if (!w.run_to_round(number, limit) && result_.broken.empty())
    expect(false, fmt::format("round {} was not certified on all honest nodes within {:.0f} virtual seconds",
                              number, to_seconds(w.world().now() - begun)));
  if (w.newest_anchor()) result_.losses.push_back(task_->held_out_loss(w.newest_anchor()->weights));
}

void Run::play() {
  make_world();
  result_.first_loss = task_->held_out_loss(task_->initial_weights());
  if (options_.name == "slow-node") {
    // One node at a quarter of the others' speed, from the start.
    world_->kill(options_.nodes - 1);
    world_->set_step_time(options_.nodes - 1, 4 * step_time);
    world_->start(options_.nodes - 1);
  }
  for (std::uint64_t number = 1;
       number <= options_.rounds && result_.broken.empty() && !options_.stop.cancelled(); ++number)
    round(number);
  if (down_ && !world_->running(*down_)) {
    world_->start(*down_);
    world_->run_to_round(world_->newest_round() + 1, 40 * round_time());
  }
  // Whoever is a message behind: between two rounds all hold the same.
  world_->world().run_until([this] { return world_->agreement_rate() == 1; },
                            world_->world().now() + 2 * round_time() + 10 * second);
  if (!options_.stop.cancelled()) finish();
}

void Run::finish() {
  RoundWorld& w = *world_;
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
  std::array<std::uint64_t, static_cast<std::size_t>(rounds::Verdict::Count_)> refused{};
  std::size_t honest = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (liar(i) || !w.running(i)) continue;
    result_.waiting_share += (w.trainer(i).waiting_share() - result_.waiting_share) / double(++honest);
    const auto view = w.node(i).view();
    for (std::size_t k = 0; k < refused.size(); ++k) refused[k] += view.refused[k];
  }
  for (std::size_t k = 0; k < refused.size(); ++k) {
    result_.refused += refused[k];
    if (refused[k] > 0)
      result_.refused_by.emplace_back(rounds::to_string(static_cast<rounds::Verdict>(k)), refused[k]);
  }
  for (std::uint64_t r = 1; r <= seen.rounds; ++r) {
    const rounds::RoundBody* body = w.body(r);
    if (body == nullptr) continue;
    for (const auto& c : body->contributors)
      for (std::size_t i = options_.nodes - liars_; i < options_.nodes; ++i)
        if (body->members[c.member].id == w.id(i)) ++result_.liars_counted;
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
  if (options_.name == "partition") expect(result_.provisional > 0, "nobody noticed the cut");
  if (options_.name == "corrupted-replica")
    expect(result_.corruptions == 1 && result_.anchors_fetched >= 1,
           "the broken anchor was not found and repaired");
  if (lie_ == Lie::TwoPayloads) {
    expect(result_.evidence > 0, "two payloads of one sender left no evidence");
    expect(result_.liars_counted == 0, "a sender of two payloads was counted");
  }
  if (lie_ == Lie::Replay || lie_ == Lie::StaleBase) expect(result_.refused > 0, "nothing was refused");
}

Expected<ScenarioResult> Run::run() {
  const auto& all = scenarios();
  if (std::none_of(all.begin(), all.end(), [this](const auto& s) { return s.name == options_.name; })) {
    std::string names;
    for (const ScenarioInfo& s : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("there is no scenario \"{}\"; there are {}", options_.name, names));
  }
  attack_ = attack_of(options_.name);
  lie_ = lie_of(options_.name);
  if (attack_ || lie_) liars_ = options_.liars != 0 ? options_.liars : options_.nodes / 4;
  const bool one_group = options_.one_group || options_.nodes < rounds::least_grouped_members;
  const std::size_t most = options_.one_group ? rounds::max_round_members : rounds::max_grouped_members;
  if (options_.nodes < 4 || options_.nodes > most || options_.rounds < 1 || options_.rounds > 10'000 ||
      options_.inner_steps < 1 || options_.inner_steps > 10'000 || options_.loss < 0 || options_.loss > 0.9 ||
      3 * liars_ >= options_.nodes)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a simulation takes 4 to {} nodes{}, 1 to 10,000 rounds and steps, a loss of 0 "
                    "to 0.9, and fewer liars than a third",
                    most, options_.one_group ? " in one group" : ""));
  if (!one_group) {
    if (options_.sync != rounds::RoundSync::Plain)
      return make_error(ErrorCode::InvalidArgument,
                        "rounds of two levels know plain sync only; take --one-group, up to 64 nodes");
    return run_grouped_scenario(options_);
  }
  if (options_.name == "group-killed")
    return make_error(ErrorCode::InvalidArgument, "the scenario \"group-killed\" takes 32 nodes or more");
  outer::SoftTaskOptions task;
  task.seed = options_.seed;
  NS_ASSIGN_OR_RETURN(task_, outer::SoftTask::make(task));
  if (options_.plain_mean) rule_.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  rule_.sparse = options_.codec.codec == outer::Codec::TopK;
  play();
  if (options_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
  return std::move(result_);
}

}  // namespace

const std::vector<ScenarioInfo>& scenarios() {
  static const std::vector<ScenarioInfo> all = {
      {"clean", "nothing happens"},
      {"churn", "one node is killed in the middle of a round and back in the next, another each time"},
      {"lossy", "30 % of all messages are lost"},
      {"partition", "the network is cut in two halves for four rounds, then healed"},
      {"leader-killed", "each leader dies while it proposes and comes back a round later"},
      {"group-killed", "all members of a sub-group are killed in the third round and back in the next"},
      {"late-joiner", "a node joins in the fourth round"},
      {"corrupted-replica", "the memory of one node changes its anchor in the fifth round"},
      {"slow-node", "one node computes at a quarter of the others' speed"},
      {"sign-flip", "liars send minus the honest mean"},
      {"sign-flip-10", "liars send minus ten times the honest mean"},
      {"alie", "liars hide a little below the honest spread"},
      {"inner-product", "inner-product manipulation"},
      {"gaussian", "liars send strong noise"},
      {"zero", "liars send nothing, for full credit"},
      {"mimic", "liars repeat one honest node"},
      {"nan", "liars send what is no number"},
      {"inflated-tokens", "liars claim 10^12 tokens"},
      {"sybil", "liars send one random direction, all the same"},
      {"two-payloads", "liars send different deltas to different members"},
      {"replay", "liars send what they heard again in later rounds"},
      {"stale-base", "liars send deltas from another anchor"},
      {"copied-delta", "liars send another node's delta as theirs"},
  };
  return all;
}

Expected<ScenarioResult> run_scenario(const ScenarioOptions& options) {
  return Run(options).run();
}

}  // namespace neuroshard::sim
