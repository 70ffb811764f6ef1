#include "core/sim/scenario_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/sim/scenario_lies.h"
#include "core/sim/soft_model.h"

namespace neuroshard::sim {
namespace {

constexpr Duration step_time = std::chrono::milliseconds(200);

Hash256 network_id() {
  Hash256 id{};
  id.fill(0x5a);
  return id;
}

}  // namespace

ScenarioRun::ScenarioRun(const ScenarioOptions& options, Timing timing)
    : options_(options), lie_(lie_of(options.name)), timing_(timing), attack_(attack_of(options.name)) {
  if (attack_ || lie_) liars_ = options_.liars != 0 ? options_.liars : timing_.liars;
  if (options_.plain_mean) rule_.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  rule_.sparse = options_.codec.codec == outer::Codec::TopK;
}

Duration ScenarioRun::time_of_round(const ScenarioOptions& options) {
  return options.inner_steps * step_time;
}

void ScenarioRun::fill(PopulationOptions& population, rounds::ParticipantOptions& round) const {
  population.seed = options_.seed;
  population.nodes = options_.nodes;
  if (is("late-joiner")) population.founders = options_.nodes - 1;
  population.network.loss = options_.loss + (is("lossy") ? 0.3 : 0.0);
  population.initial = task_->initial_weights();
  population.trainer.inner_steps = options_.inner_steps;
  population.trainer.step_time = step_time;
  population.trainer.tokens_per_step = learner_.batch;
  population.trainer.codec = options_.codec;
  population.trainer.most_provisional_steps = 4 * options_.inner_steps;
  round.rules.network = network_id();
  round.rules.codec = options_.codec;
  round.rules.values = task_->parameters();
  round.rules.inner_steps = options_.inner_steps;
  round.rules.most_tokens = std::uint64_t{options_.inner_steps} * learner_.batch * 2;
  round.sync = options_.sync;
  round.outer.codec = options_.codec;
  round.outer.aggregation = rule_;
  round.first_deadline = 3 * round_time();
  round.grace = std::chrono::seconds(2);
  if (rule_.sparse) {
    population.trainer.error_feedback_beta = 0.95f;
    round.outer.mu = 0;
    round.outer.lr = 1.0f;
  }
}

Population::MakeModel ScenarioRun::make_model() const {
  return [this](std::size_t node, std::uint64_t lives) -> std::unique_ptr<LocalModel> {
    return std::make_unique<SoftModel>(task_, node, learner_, lives * 1'000'000);
  };
}

Population::MakeDistortion ScenarioRun::make_distortion() {
  return [this](std::size_t node) -> RoundTrainer::Distortion {
    if (!attack_ || !liar(node)) return nullptr;
    return [this, index = node - (options_.nodes - liars_)](std::uint64_t round, Span<float> delta,
                                                            std::uint64_t* tokens) {
      forge_round(round);
      if (forged_.empty()) return;
      const outer::ForgedDelta& forged = forged_[index % forged_.size()];
      std::copy(forged.delta.begin(), forged.delta.end(), delta.begin());
      *tokens = forged.tokens;
    };
  };
}

Population::MakeCaller ScenarioRun::make_caller() {
  return [this](std::size_t node, net::PeerCaller& out,
                const crypto::KeyPair& key) -> std::unique_ptr<net::PeerCaller> {
    if (!lie_ || !liar(node)) return nullptr;
    return std::make_unique<LyingCaller>(*lie_, out, key, network_id(), options_.codec, task_->parameters(),
                                         heard_);
  };
}

void ScenarioRun::overhear(const rounds::RoundItem& item) {
  const auto* post = std::get_if<rounds::ContributionPost>(&item);
  if (post == nullptr) return;
  auto& posts = heard_.contributions[post->contribution.round];
  if (posts.empty() || posts.back().contribution != post->contribution) posts.push_back(*post);
}

std::vector<std::vector<float>> ScenarioRun::honest_deltas() const {
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes && deltas.size() < timing_.looked_at; ++i) {
    if (liar(i) || !population_->running(i)) continue;
    deltas.push_back(population_->trainer(i).delta_now());
  }
  return deltas;
}

// Liars know what the honest are about to send, and send their best answer to it: one set a round.
void ScenarioRun::forge_round(std::uint64_t round) {
  if (round == forged_round_) return;
  forged_round_ = round;
  std::vector<std::vector<float>> deltas = honest_deltas();
  std::erase_if(deltas, [](const std::vector<float>& delta) { return delta.empty(); });
  std::vector<Span<const float>> honest;
  for (const auto& delta : deltas) honest.emplace_back(delta);
  forged_.clear();
  if (honest.empty()) return;
  Rng rng(options_.seed * 31 + round);
  forged_ = outer::forge(*attack_, honest, liars_, std::uint64_t{options_.inner_steps} * learner_.batch,
                         rule_, rng);
}

void ScenarioRun::revive() {
  for (const std::size_t node : down_)
    if (!population_->running(node)) population_->start(node);
  down_.clear();
}

void ScenarioRun::set_halves(bool apart) {
  for (std::size_t i = 0; i < options_.nodes; ++i) population_->set_part(i, apart && i % 2 == 1 ? 1 : 0);
}

// What happens in the middle of a round's training.
void ScenarioRun::before_end_of(std::uint64_t round) {
  happen(round);
  const std::size_t last = options_.nodes - 1;
  if (is("partition") && round == timing_.event_round) set_halves(true);
  if (is("late-joiner") && round == timing_.event_round) population_->start(last);
}

void ScenarioRun::measure_cosine() {
  result_.delta_cosine = mean_cosine(honest_deltas());
}

void ScenarioRun::round(std::uint64_t number) {
  Population& w = *population_;
  const MonotonicTime begun = w.world().now();
  w.world().run_for(round_time() / 2);
  before_end_of(number);
  if (number == 1) {
    w.world().run_for(round_time() / 2 - step_time);
    measure_cosine();
  }
  if (is("partition") && number == timing_.event_round) {
    // Neither half is a quorum: a while of it, then together again.
    const std::uint64_t before = w.newest_round();
    w.world().run_for(timing_.cut);
    expect(w.newest_round() == before, "half of the members certified a round");
    set_halves(false);
  }
  // Where members are so few that the others can't end a round without the dead, these come back by the
  // clock.
  const Duration patience = 4 * round_time() + std::chrono::seconds(20);
  const MonotonicTime end = w.world().now() + timing_.round_limit;
  const auto taken = [&] { return w.run_to_round(number, std::min(patience, end - w.world().now())); };
  while (!taken() && w.world().now() < end && !options_.stop.cancelled()) revive();
  if (!w.run_to_round(number, Duration{}) && result_.broken.empty())
    expect(false, fmt::format("round {} was not certified on all honest nodes within {:.0f} virtual seconds",
                              number, to_seconds(w.world().now() - begun)));
  if (w.newest_anchor()) result_.losses.push_back(task_->held_out_loss(w.newest_anchor()->weights));
}

void ScenarioRun::play() {
  population_ = &make_world();
  Population& w = *population_;
  w.world().stop_with(options_.stop);
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (liar(i)) w.set_honest(i, false);
  if (lie_ == Lie::ViewJump)
    w.change_answers([this, times = std::uint64_t{0}](std::size_t node, const net::Caller& to,
                                                      net::Method method, Bytes* answer) mutable {
      if (liar(node) && method == net::Method::RoundStatus)
        *answer = with_view(std::move(*answer), false_view(to.id, times++));
    });
  const std::size_t last = options_.nodes - 1;
  if (is("slow-node")) w.set_step_time(last, 4 * step_time);  // a quarter of the others' speed
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!is("late-joiner") || i != last) w.start(i);
  for (std::uint64_t number = 1;
       number <= options_.rounds && result_.broken.empty() && !options_.stop.cancelled(); ++number)
    round(number);
  if (!down_.empty()) {
    revive();
    w.run_to_round(w.newest_round() + 1, timing_.round_limit);
  }
  // Whoever is a message behind: between two rounds all hold the same.
  w.world().run_until([this] { return agreement_rate() == 1; },
                      w.world().now() + 2 * round_time() + std::chrono::seconds(10));
}

void ScenarioRun::count() {
  Population& w = *population_;
  const RoundWorldSeen seen = w.seen();
  result_.rounds = seen.rounds;
  result_.conflicts = seen.conflicts;
  result_.counted_twice = seen.twice;
  result_.worst_agreement = seen.worst_agreement;
  result_.hash_agreement_rate = agreement_rate();
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
    const rounds::RoundView seen_by_it = view(i);
    for (std::size_t k = 0; k < refused.size(); ++k) refused[k] += seen_by_it.refused[k];
  }
  for (std::size_t k = 0; k < refused.size(); ++k) {
    result_.refused += refused[k];
    if (refused[k] > 0)
      result_.refused_by.emplace_back(rounds::to_string(static_cast<rounds::Verdict>(k)), refused[k]);
  }
  const NetworkCounters& net = w.network().counters();
  result_.messages = net.calls;
  result_.bytes = net.bytes;
  result_.lost = net.lost;
  result_.events = w.world().events();
  result_.virtual_seconds = to_seconds(w.world().now().time_since_epoch());
}

void ScenarioRun::check() {
  expect(result_.conflicts == 0, "two certificates of one round differ");
  expect(result_.counted_twice == 0, "a contribution was counted twice");
  expect(result_.worst_agreement == 1, "an honest node took another anchor than the certified one");
  expect(result_.hash_agreement_rate == 1, "honest nodes end with different anchors");
  expect(std::isfinite(result_.last_loss) && result_.last_loss < result_.first_loss, "nothing was learned");
  if (is("partition")) expect(result_.provisional > 0, "nobody noticed the cut");
  if (is("corrupted-replica"))
    expect(result_.corruptions >= 1 && result_.anchors_fetched >= 1,
           "the broken anchor was not found and repaired");
  if (lie_ == Lie::TwoPayloads) expect(result_.evidence > 0, "two payloads of one sender left no evidence");
  if (lie_ == Lie::FalseProof) expect(result_.evidence == 0, "made-up proof was believed");
  if (lie_ == Lie::Replay || lie_ == Lie::StaleBase || lie_ == Lie::FalseProof)
    expect(result_.refused > 0, "nothing was refused");
}

Expected<ScenarioResult> ScenarioRun::run() {
  outer::SoftTaskOptions task;
  task.seed = options_.seed;
  NS_ASSIGN_OR_RETURN(task_, outer::SoftTask::make(task));
  result_.first_loss = task_->held_out_loss(task_->initial_weights());
  play();
  if (options_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
  count();
  look_at_certificates(result_.rounds);
  check();
  return std::move(result_);
}

}  // namespace neuroshard::sim
