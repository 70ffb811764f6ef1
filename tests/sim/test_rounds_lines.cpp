// Rounds over lines that they fill: the line sets their pace, nobody falls out for it, and who was away or
// comes new gets in step again (rounds/participant_waiting.cpp).
#include <fmt/format.h>

#include <QtTest>

#include "core/sim/round_world.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr std::size_t values = 1'000'000;  // a megabyte a delta, eight a state
constexpr std::uint32_t inner_steps = 20;
constexpr Duration training = std::chrono::seconds(3);

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

RoundWorldOptions over_lines(std::size_t nodes, double megabits, rounds::RoundSync sync) {
  RoundWorldOptions o;
  o.nodes = nodes;
  o.network.least_delay = o.network.most_delay = std::chrono::milliseconds(10);
  o.network.bytes_per_second = megabits * 1e6 / 8;
  o.network.passes_by = 16 << 10;
  o.initial.assign(values, 0.0f);
  o.round.sync = sync;
  o.round.rules.network.fill(3);
  o.round.rules.values = values;
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps;
  o.round.tick = std::chrono::milliseconds(100);
  o.round.first_deadline = std::chrono::minutes(3);
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = training / inner_steps;
  o.trainer.tokens_per_step = 1;
  return o;
}

std::unique_ptr<LocalModel> slope(std::size_t node, std::uint64_t) {
  return std::make_unique<Slope>(node);
}

std::string text(RoundWorld& world) {
  const double seconds = to_seconds(world.world().now().time_since_epoch());
  std::string all = fmt::format("{:.0f} s, round {}", seconds, world.newest_round());
  for (std::size_t i = 0; i < world.size(); ++i)
    if (world.running(i))
      all += fmt::format("; node {}: state of {}, {} in certificates, {} provisional", i,
                         world.node(i).state_round(), world.node(i).view().contributed,
                         world.node(i).view().provisional);
  return all;
}

}  // namespace

class TestRoundsLines : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_line_sets_the_pace();
  void who_was_away_is_in_step_again_data();
  void who_was_away_is_in_step_again();
  void one_slow_line_holds_nobody_up_for_long();
};

// A round's bytes need ten times as long as its training, and longer than a node trains on until it takes the
// others for lost. Each of seven that ask for everything at once waits long for each piece.
void TestRoundsLines::the_line_sets_the_pace() {
  constexpr double megabits = 2;
  RoundWorldOptions o = over_lines(8, megabits, rounds::RoundSync::Delayed);
  o.round.provisional_after = std::chrono::seconds(20);
  RoundWorld world(o, slope);
  for (std::size_t i = 0; i < world.size(); ++i) world.start(i);
  constexpr std::uint64_t rounds = 2;
  constexpr double of_line = 7 * values * 8 / (megabits * 1e6);
  const auto limit = std::chrono::seconds(static_cast<int>(rounds * (of_line * 1.5 + 10)));
  const bool in_time = world.run_to_round(rounds, limit);
  const std::string all = text(world);
  qInfo("%s", all.c_str());
  QVERIFY2(in_time && world.seen().conflicts == 0, all.c_str());
  QVERIFY2(world.seen().provisional == 0 && world.seen().fetched == 0, all.c_str());
  for (std::uint64_t r = 1; r <= rounds; ++r) QCOMPARE(world.body(r)->contributors.size(), std::size_t(8));
}

void TestRoundsLines::who_was_away_is_in_step_again_data() {
  QTest::addColumn<bool>("overlap");
  QTest::addColumn<int>("away");
  QTest::newRow("plain, for a round") << false << 1;
  QTest::newRow("delayed-1, until it was expelled") << true << 4;
}

// The state is as large as all payloads of a round, which fill the line by themselves.
void TestRoundsLines::who_was_away_is_in_step_again() {
  QFETCH(bool, overlap);
  QFETCH(int, away);
  constexpr std::size_t last = 5;
  RoundWorld world(over_lines(last + 1, 10, overlap ? rounds::RoundSync::Delayed : rounds::RoundSync::Plain),
                   slope);
  for (std::size_t i = 0; i < world.size(); ++i) world.start(i);
  QVERIFY(world.run_to_round(2, std::chrono::minutes(5)));
  world.world().run_for(training / 2);
  world.kill(last);
  QVERIFY(
      world.run_to_round(world.newest_round() + static_cast<std::uint64_t>(away), std::chrono::minutes(5)));
  world.world().run_for(training / 2);
  world.start(last);
  const MonotonicTime back = world.world().now();
  const auto in_step = [&] { return world.node(last).view().contributed >= 3; };
  const bool counts = world.world().run_until(in_step, back + std::chrono::minutes(4));
  const std::string all =
      fmt::format("after {:.0f} s: {}", to_seconds(world.world().now() - back), text(world));
  qInfo("%s", all.c_str());
  QVERIFY2(counts && world.seen().conflicts == 0, all.c_str());
  // From then on with a whole round's work, and nobody else fell out meanwhile.
  const std::uint64_t newest = world.newest_round();
  QVERIFY(world.run_to_round(newest + 1, std::chrono::minutes(2)));
  QCOMPARE(world.body(newest + 1)->contributors.size(), std::size_t(last + 1));
  for (const auto& c : world.body(newest + 1)->contributors) QVERIFY(c.steps >= inner_steps * 3 / 4);
}

// Its payload needs longer than ten rounds of the others; it moves all the time.
void TestRoundsLines::one_slow_line_holds_nobody_up_for_long() {
  RoundWorld world(over_lines(5, 20, rounds::RoundSync::Plain), slope);
  world.network().set_line(static_cast<Host>(4), 0.5e6 / 8);
  for (std::size_t i = 0; i < world.size(); ++i) world.start(i);
  // The first round has no measure yet; in the next two the slow one is waited for once more.
  world.world().run_for(std::chrono::seconds(144));
  const std::string all = text(world);
  qInfo("%s", all.c_str());
  QVERIFY2(world.newest_round() >= 8 && world.seen().conflicts == 0, all.c_str());
  for (std::size_t i = 0; i < 4; ++i)
    QVERIFY2(world.node(i).view().contributed + 1 >= world.newest_round(), all.c_str());
}

NS_TEST(TestRoundsLines)
#include "test_rounds_lines.moc"
