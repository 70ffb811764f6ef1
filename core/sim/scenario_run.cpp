#include "core/sim/scenario_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace neuroshard::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t event_round = 4;  // of what happens once
constexpr std::size_t looked_at = 64;     // deltas that attackers and cosines see, at most

}  // namespace

std::size_t byzantine_of(const ScenarioOptions& options) {
  const bool has = attack_of(options.name) || lie_of(options.name) || options.name == "silent-joiners";
  if (!has) return 0;
  return options.byzantine != 0 ? options.byzantine : options.nodes / 4;
}

ScenarioRun::ScenarioRun(const ScenarioOptions& options)
    : options_(options), byzantine_(byzantine_of(options)), lie_(lie_of(options.name)) {
  if (options_.plain_mean) rule_.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  rule_.sparse = options_.codec.codec == outer::Codec::TopK;
}

// That its training takes.
Duration ScenarioRun::round_time() const {
  return static_cast<Duration::rep>(options_.inner_steps) * scenario_step_time /
         static_cast<Duration::rep>(options_.sync.fragments);
}

// ---- What happens

// Some have the proposal, others don't. One leader in each round: where three members are left, two deaths in
// a row would leave nobody to propose.
bool ScenarioRun::dies_with_proposal(std::size_t node) {
  const std::uint64_t round = world_->round(node) + 1;
  if (!is("leader-killed") || !down_.empty() || round <= leader_died_in_) return false;
  if (++proposals_ < 2) return false;
  proposals_ = 0;
  leader_died_in_ = round;
  down_.push_back(node);
  world_->kill(node);
  return true;
}

void ScenarioRun::revive() {
  for (const std::size_t node : down_)
    if (!world_->running(node)) world_->start(node);
  down_.clear();
}

void ScenarioRun::corrupt(std::size_t node) {
  const rounds::Anchor& held = world_->training(node).states().state(0);
  if (!held) return;
  std::vector<float> weights = outer::read_all(held->weights()).value();
  for (std::size_t i = 0; i < weights.size(); i += 97) weights[i] += 0.25f;
  const std::vector<float> momentum = outer::read_all(held->momentum()).value();
  const_cast<rounds::OuterState&>(*held).bytes =  // NOLINT: what a faulty memory does
      rounds::state_in_memory(weights, momentum)->bytes;
}

// In the middle of a round's training.
void ScenarioRun::before_end_of(std::uint64_t number) {
  const std::size_t last = options_.nodes - 1;
  if (is("churn")) {
    // One is away in every second round: killed in mid-round, back in the next.
    if (!down_.empty()) {
      revive();
    } else {
      down_.push_back((number / 2) % options_.nodes);
      world_->kill(down_.back());
    }
  }
  if (is("leader-killed")) revive();
  if (is("corrupted-replica") && number == event_round + 1) corrupt(last);
  if (is("partition") && number == event_round) cut_in_halves();
  if (is("night") && number == event_round) sleep_and_wake();
  if (is("late-joiner") && number == event_round) {
    const auto expires =
        static_cast<std::uint64_t>(to_unix_ms(world_->world().clock().wall_now())) + 3'600'000;
    if (const auto voucher = world_->chain(0).give_voucher(expires); voucher.ok())
      world_->set_voucher(last, *voucher);
    world_->start(last);
  }
}

// Neither half is a quorum: a while of it, then together again.
void ScenarioRun::cut_in_halves() {
  const std::uint64_t before = newest_round();
  for (std::size_t i = 1; i < options_.nodes; i += 2) world_->set_part(i, 1);
  world_->world().run_for(static_cast<Duration::rep>(scenario_rounds_apart) * round_time() + seconds(1));
  expect(newest_round() <= before + 1, "half of the members certified rounds");  // one may have been signed
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (world_->running(i) && world_->training(i).view().provisional) ++result_.provisional;
  for (std::size_t i = 1; i < options_.nodes; i += 2) world_->set_part(i, 0);
}

// Where they are many, the last one to go says nothing.
void ScenarioRun::sleep_and_wake() {
  const std::size_t stay = std::max<std::size_t>(2, options_.nodes * 3 / 8);
  for (std::size_t node = stay; node < options_.nodes; ++node) {
    const bool polite = node + 1 < options_.nodes || stay < 3;
    if (polite) {
      world_->chain(node).set_away(true);
      world_->run_until([&] { return !in_committee(node); }, 4 * round_time() + seconds(20));
      expect(!in_committee(node), "a node that said that it goes is waited for");
    }
    world_->kill(node);
    down_.push_back(node);
  }
  const std::uint64_t before = newest_round();
  world_->run_until([&] { return newest_round() >= before + scenario_rounds_apart; },
                    static_cast<Duration::rep>(4 * scenario_rounds_apart) * round_time() + seconds(60));
  expect(newest_round() >= before + scenario_rounds_apart, "the others did not go on at night");
  revive();
  world_->run_until(
      [&] {
        for (std::size_t node = 0; node < options_.nodes; ++node)
          if (!in_committee(node)) return false;
        return true;
      },
      8 * round_time() + seconds(60));
  for (std::size_t node = 0; node < options_.nodes; ++node)
    expect(in_committee(node), "a node that is back has no vote");
}

void ScenarioRun::round(std::uint64_t number) {
  const MonotonicTime begun = world_->world().now();
  world_->world().run_for(round_time() / 2);
  before_end_of(number);
  if (number == 1 && options_.sync.fragments == 1) {
    world_->world().run_for(round_time() / 2 - scenario_step_time);
    result_.delta_cosine = mean_cosine(honest_deltas());
  }
  // Where members are so few that the others can't end a round without the dead, these come back by the
  // clock. Calls that are lost take their time.
  const Duration patience = 4 * round_time() + seconds(20);
  const MonotonicTime end = world_->world().now() + 40 * round_time() + seconds(120);
  const auto taken = [&] {
    return world_->run_to_round(number, std::min(patience, end - world_->world().now()));
  };
  while (!taken() && world_->world().now() < end && !options_.stop.cancelled()) revive();
  if (!world_->run_to_round(number, Duration{}) && result_.broken.empty())
    expect(false, fmt::format("round {} was not certified on all honest nodes within {:.0f} virtual seconds",
                              number, to_seconds(world_->world().now() - begun)));
  if (world_->newest_anchor()) result_.losses.push_back(task_->held_out_loss(world_->newest_weights()));
}

void ScenarioRun::play() {
  make_world();
  const std::size_t last = options_.nodes - 1;
  if (is("slow-node")) world_->set_step_time(last, 4 * scenario_step_time);
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!is("late-joiner") || i != last) world_->start(i);
  for (std::uint64_t number = 1;
       number <= options_.rounds && result_.broken.empty() && !options_.stop.cancelled(); ++number)
    round(number);
  if (!down_.empty()) {
    revive();
    world_->run_to_round(newest_round() + 1, 40 * round_time() + seconds(120));
  }
  // A node may be a message behind: between two rounds all hold the same.
  world_->run_until([this] { return world_->agreement_rate() == 1; }, 2 * round_time() + seconds(10));
}

// ---- What is seen

std::uint64_t ScenarioRun::newest_round() const {
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!is_byzantine(i)) newest = std::max(newest, world_->round(i));
  return newest;
}

// As the first node sees it, which runs always but in scenarios of deaths.
bool ScenarioRun::in_committee(std::size_t node) const {
  return world_->chain(0).history()->tip().committee->position(world_->id(node)).has_value();
}

std::vector<std::vector<float>> ScenarioRun::honest_deltas() const {
  std::vector<std::vector<float>> deltas;
  for (std::size_t i = 0; i < options_.nodes && deltas.size() < looked_at; ++i)
    if (!is_byzantine(i) && world_->running(i)) deltas.push_back(world_->trainer(i).delta_now());
  return deltas;
}

void ScenarioRun::count() {
  const ChainWorldSeen& seen = world_->seen();
  result_.rounds = newest_round();
  result_.blocks = seen.blocks;
  result_.conflicts = seen.conflicts;
  result_.counted_twice = seen.twice;
  result_.wrong_anchors = seen.wrong_anchors;
  result_.rows_carried = seen.rows_carried;
  result_.contributions = seen.contributions;
  result_.hash_agreement_rate = world_->agreement_rate();
  result_.last_loss = result_.losses.empty() ? result_.first_loss : result_.losses.back();
  result_.byzantine = byzantine_;
  count_nodes();
  for (const auto& [verdict, count] : answers_) {
    if (verdict == chain::Verdict::Taken || verdict == chain::Verdict::Known) continue;
    result_.refused += count;
    result_.refused_by.emplace_back(chain::to_string(verdict), count);
  }
  const NetworkCounters& net = world_->network().counters();
  result_.messages = net.calls;
  result_.bytes = net.bytes;
  result_.lost = net.lost;
  result_.events = world_->world().events();
  result_.virtual_seconds = to_seconds(world_->world().now().time_since_epoch());
}

void ScenarioRun::count_nodes() {
  std::size_t honest = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (!world_->running(i)) continue;
    const rounds::TrainingView training = world_->training(i).view();
    if (is_byzantine(i)) {
      result_.byzantine_counted += training.counted;
      continue;
    }
    result_.waiting_share += (world_->learners(i).waiting_share() - result_.waiting_share) / double(++honest);
    result_.anchors_fetched += training.fetched_anchors;
    result_.evidence += world_->chain(i).view().evidence;
    const chain::History* history = world_->chain(i).history();
    if (history == nullptr) continue;
    const auto& wallets = history->tip().registry->wallets();
    const auto expelled =
        std::count_if(wallets.begin(), wallets.end(), [](const auto& w) { return w.expelled; });
    result_.expelled = std::max(result_.expelled, static_cast<std::uint64_t>(expelled));
  }
}

void ScenarioRun::check() {
  expect(result_.conflicts == 0, "two certified blocks of one height differ");
  expect(result_.counted_twice == 0, "a contribution was counted twice");
  expect(result_.wrong_anchors == 0, "an honest node took another anchor than the certified one");
  expect(result_.hash_agreement_rate == 1, "honest nodes end with different anchors");
  expect(std::isfinite(result_.last_loss) && result_.last_loss < result_.first_loss, "nothing was learned");
  if (is("partition")) expect(result_.provisional > 0, "nobody noticed the cut");
  if (is("corrupted-replica") && options_.rounds > event_round + 1)
    expect(result_.anchors_fetched >= 1, "the broken anchor was not found and repaired");
  if (is("late-joiner") && options_.rounds > 2 * event_round)
    expect(world_->training(options_.nodes - 1).view().counted > 0, "the joiner's work never counted");
  if (is("silent-joiners"))
    for (std::size_t node = options_.nodes - byzantine_; node < options_.nodes; ++node)
      expect(!in_committee(node), "a silent joiner has a vote");
  // A copier's node still gives its own contribution to nodes that ask: that is a second one.
  const bool contradicts = lie_ == Lie::TwoPayloads || lie_ == Lie::FalseVotes || lie_ == Lie::CopiedDelta;
  if (contradicts)
    expect(result_.expelled == byzantine_, "a node that signed two things for one place was not expelled");
  else
    expect(result_.expelled == 0, "a node was expelled that signed no two things for one place");
  // A node that sends one of the two to a few only may be counted before the evidence is there.
  if (lie_ == Lie::TwoPayloads)
    expect(result_.byzantine_counted <= byzantine_, "a node that sent two payloads was counted repeatedly");
  if (lie_ == Lie::CopiedDelta)  // in the first round there is nothing to copy
    expect(result_.byzantine_counted <= byzantine_, "a copied contribution was counted");
  if (lie_ == Lie::StaleBase)
    expect(result_.byzantine_counted == 0, "a contribution counted that names another opening block");
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
  check();
  return std::move(result_);
}

}  // namespace neuroshard::sim
