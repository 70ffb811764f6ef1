// Rounds that overlap (sync "delayed-1"): training hardly waits where a plain round waits a third of its
// time, learns as well, and what must always hold still does, whatever dies, is cut off or lies. Over lines
// of a given speed, too.
#include <fmt/format.h>

#include <QtTest>

#include "core/sim/round_world.h"
#include "core/sim/scenario.h"
#include "core/sim/soft_model.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr Duration round_time = std::chrono::seconds(4);
constexpr std::uint32_t inner_steps = 20;

std::shared_ptr<const outer::SoftTask> task() {
  outer::SoftTaskOptions options;
  options.features = 64;
  options.samples = 4096;
  options.held_out = 512;
  options.separation = 0.3f;
  return *outer::SoftTask::make(options);
}

// A message takes half a second, an eighth of a round's training.
RoundWorldOptions far_apart(std::uint64_t seed, rounds::RoundSync sync) {
  RoundWorldOptions o;
  o.seed = seed;
  o.nodes = 4;
  o.network.least_delay = o.network.most_delay = std::chrono::milliseconds(250);
  o.initial = task()->initial_weights();
  o.round.sync = sync;
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps * 32;
  o.round.tick = std::chrono::milliseconds(100);
  o.round.first_deadline = 3 * round_time;
  o.round.provisional_after = 3 * round_time;
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 32;
  o.trainer.most_provisional_steps = 4 * inner_steps;
  return o;
}

// Other batches with each seed.
RoundWorld::MakeModel model_of(std::uint64_t seed) {
  return [seed](std::size_t node, std::uint64_t lives) -> std::unique_ptr<LocalModel> {
    return std::make_unique<SoftModel>(task(), seed * 100 + node, outer::SoftLearnerOptions{},
                                       lives * 100'000);
  };
}

// Learns nothing, and is done at once, whatever its size.
class Slope final : public LocalModel {
 public:
  explicit Slope(std::size_t node) : node_(node) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] += 1e-4f * static_cast<float>(steps) * static_cast<float>((i * 7 + node_ * 13) % 101);
  }

 private:
  const std::size_t node_;
};

struct Outcome {
  double waiting = 0, loss = 0, seconds = 0;
  std::uint64_t rounds = 0;
  bool safe = false, in_time = false;
  std::size_t least_steps = inner_steps;  // of a contribution
};

Outcome run(const RoundWorldOptions& options, std::uint64_t rounds) {
  RoundWorld world(options, model_of(options.seed));
  for (std::size_t i = 0; i < options.nodes; ++i) world.start(i);
  Outcome outcome;
  outcome.in_time = world.run_to_round(rounds, static_cast<int>(rounds) * 20 * round_time);
  for (std::size_t i = 0; i < options.nodes; ++i)
    outcome.waiting += world.trainer(i).waiting_share() / double(options.nodes);
  outcome.seconds = to_seconds(world.world().now().time_since_epoch());
  for (std::uint64_t r = 1; r <= rounds; ++r)
    for (const auto& c : world.body(r)->contributors)
      outcome.least_steps = std::min<std::size_t>(outcome.least_steps, c.steps);
  const RoundWorldSeen seen = world.seen();
  outcome.rounds = seen.rounds;
  outcome.safe = seen.conflicts == 0 && seen.twice == 0 && seen.worst_agreement == 1 && seen.provisional == 0;
  outcome.loss = task()->held_out_loss(world.newest_anchor()->weights);
  return outcome;
}

}  // namespace

class TestRoundsSync : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void hardly_waits_and_learns_as_well();
  void a_slow_line_costs_no_steps();
  void eight_large_deltas_over_slow_lines();
  void who_is_ahead_once_is_not_so_for_ever();
  void waits_when_a_round_takes_longer_than_its_training();
  void every_step_counts_once();
  void what_must_hold_holds_data();
  void what_must_hold_holds();
};

void TestRoundsSync::hardly_waits_and_learns_as_well() {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Outcome plain = run(far_apart(seed, rounds::RoundSync::Plain), 15);
    const Outcome delayed = run(far_apart(seed, rounds::RoundSync::Delayed), 15);
    const std::string both = fmt::format(
        "seed {}: waiting {:.3f} and {:.3f}, loss {:.4f} and {:.4f}, seconds {:.0f} and {:.0f}, least steps "
        "{}, {}",
        seed, plain.waiting, delayed.waiting, plain.loss, delayed.loss, plain.seconds, delayed.seconds,
        plain.least_steps, delayed.least_steps);
    qInfo("%s", both.c_str());
    QVERIFY2(plain.in_time && plain.safe && delayed.in_time && delayed.safe, both.c_str());
    QVERIFY2(plain.waiting > 0.25, both.c_str());
    QVERIFY2(delayed.waiting < 0.05, both.c_str());
    QVERIFY2(delayed.seconds < 0.8 * plain.seconds, both.c_str());
    // The same rounds with the same steps; each a little staler.
    QVERIFY2(delayed.least_steps == inner_steps, both.c_str());
    QVERIFY2(delayed.loss < 1.03 * plain.loss, both.c_str());
  }
}

void TestRoundsSync::a_slow_line_costs_no_steps() {
  for (const auto sync : {rounds::RoundSync::Plain, rounds::RoundSync::Delayed}) {
    RoundWorldOptions options = far_apart(1, sync);
    options.network.least_delay = options.network.most_delay = std::chrono::milliseconds(10);
    options.network.bytes_per_second = 3000;  // deltas and votes need a good part of a round
    const Outcome outcome = run(options, 8);
    const std::string all =
        fmt::format("waiting {:.3f}, least steps {}", outcome.waiting, outcome.least_steps);
    qInfo("%s", all.c_str());
    QVERIFY2(outcome.in_time && outcome.safe, all.c_str());
    QVERIFY2(sync == rounds::RoundSync::Plain ? outcome.waiting > 0.2 : outcome.waiting < 0.05, all.c_str());
  }
}

// Seven ask each line for pieces at the same time, so that each takes seconds, and a certificate is there
// before all that it names: nobody is left out for it, and nothing is fetched twice.
void TestRoundsSync::eight_large_deltas_over_slow_lines() {
  constexpr std::size_t values = 1'000'000;
  constexpr double megabits = 10;
  RoundWorldOptions o = far_apart(1, rounds::RoundSync::Plain);
  o.nodes = 8;
  o.network.least_delay = o.network.most_delay = std::chrono::milliseconds(10);
  o.network.bytes_per_second = megabits * 1e6 / 8;
  o.network.passes_by = 16 << 10;
  o.initial.assign(values, 0.0f);
  o.round.rules.values = values;
  o.trainer.step_time = std::chrono::seconds(1);
  o.round.first_deadline = std::chrono::minutes(3);
  RoundWorld world(o, [](std::size_t node, std::uint64_t) { return std::make_unique<Slope>(node); });
  for (std::size_t i = 0; i < o.nodes; ++i) world.start(i);
  constexpr std::uint64_t rounds = 3;
  const bool in_time = world.run_to_round(rounds, std::chrono::minutes(10));
  const double sent = static_cast<double>(world.network().counters().bytes);
  const double needed = double(rounds) * 8 * 7 * values;
  std::string all = fmt::format("{:.2f} times the bytes", sent / needed);
  for (std::uint64_t r = 1; r <= rounds && in_time; ++r)
    all += fmt::format(", round {}: {} of 8", r, world.body(r)->contributors.size());
  qInfo("%s", all.c_str());
  QVERIFY2(in_time && world.seen().conflicts == 0, all.c_str());
  for (std::uint64_t r = 1; r <= rounds; ++r) QVERIFY2(world.body(r)->contributors.size() == 8, all.c_str());
  QVERIFY2(sent < 1.05 * needed, all.c_str());
}

// One of four begins half a round after the others. Where rounds overlap nobody waits for it, so those would
// stay half a round ahead, and each anchor half a round stale for them.
void TestRoundsSync::who_is_ahead_once_is_not_so_for_ever() {
  RoundWorldOptions options = far_apart(1, rounds::RoundSync::Delayed);
  options.network.least_delay = options.network.most_delay = std::chrono::milliseconds(10);
  RoundWorld world(options, model_of(options.seed));
  for (const std::size_t node : {0, 1}) world.start(node);
  world.world().run_for(round_time / 2);
  for (const std::size_t node : {2, 3}) world.start(node);
  // How long after its contribution a node has the anchor, on average of five rounds.
  const auto stale = [&](std::size_t node, std::uint64_t from) {
    const Duration before = world.node(node).view().waiting;
    if (!world.run_to_round(from + 5, 100 * round_time)) return 1e9;
    return to_seconds(world.node(node).view().waiting - before) / 5 / to_seconds(round_time);
  };
  QVERIFY(world.run_to_round(4, 100 * round_time));
  for (const std::size_t node : {0, 1, 2, 3}) {
    const double share = stale(node, world.newest_round());
    QVERIFY2(share < 0.15, fmt::format("node {}: {:.2f} of a round", node, share).c_str());
  }
}

void TestRoundsSync::waits_when_a_round_takes_longer_than_its_training() {
  RoundWorldOptions options = far_apart(1, rounds::RoundSync::Delayed);
  options.network.least_delay = options.network.most_delay = std::chrono::milliseconds(800);
  const Outcome outcome = run(options, 8);
  const std::string all = fmt::format("waiting {:.3f}, least steps {}", outcome.waiting, outcome.least_steps);
  qInfo("%s", all.c_str());
  QVERIFY2(outcome.in_time && outcome.safe, all.c_str());
  QVERIFY2(outcome.waiting > 0.1, all.c_str());               // not further than a round ahead
  QVERIFY2(outcome.least_steps == inner_steps, all.c_str());  // and rounds do not shrink by it
}

// What all certificates name is what was trained, but for what is under way.
void TestRoundsSync::every_step_counts_once() {
  const RoundWorldOptions options = far_apart(5, rounds::RoundSync::Delayed);
  RoundWorld world(options, model_of(options.seed));
  for (std::size_t i = 0; i < options.nodes; ++i) world.start(i);
  QVERIFY(world.run_to_round(10, 200 * round_time));
  for (std::size_t i = 0; i < options.nodes; ++i) {
    std::uint64_t named = 0;
    for (std::uint64_t r = 1; r <= 10; ++r)
      for (const auto& c : world.body(r)->contributors)
        if (world.body(r)->members[c.member].id == world.id(i)) named += c.steps;
    const std::uint64_t trained = world.trainer(i).steps_trained();
    const std::string all = fmt::format("node {}: {} named, {} trained", i, named, trained);
    QVERIFY2(named <= trained && trained - named <= 2 * inner_steps, all.c_str());
    QVERIFY2(named >= 9 * inner_steps, all.c_str());
  }
}

void TestRoundsSync::what_must_hold_holds_data() {
  QTest::addColumn<QString>("name");
  for (const char* name : {"clean", "churn", "lossy", "partition", "leader-killed", "late-joiner",
                           "corrupted-replica", "slow-node", "two-payloads", "stale-base", "sign-flip-10"})
    QTest::newRow(name) << name;
}

void TestRoundsSync::what_must_hold_holds() {
  QFETCH(QString, name);
  const bool in_long = qEnvironmentVariableIntValue("NS_LONG") != 0;
  for (std::uint64_t seed = 1; seed <= (in_long ? 20u : 1u); ++seed) {
    ScenarioOptions options;
    options.name = name.toStdString();
    options.seed = seed;
    options.rounds = 7;
    options.inner_steps = 10;
    options.sync = rounds::RoundSync::Delayed;
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    std::string broken = fmt::format("seed {}:", seed);
    for (const std::string& one : result->broken) broken += " " + one + ";";
    QVERIFY2(result->broken.empty(), broken.c_str());
  }
}

NS_TEST(TestRoundsSync)
#include "test_rounds_sync.moc"
