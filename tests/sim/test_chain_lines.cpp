// Rounds over lines that they fill: the line sets their pace, nobody is left out for it, and a node that was
// away gets in step again.
#include <fmt/format.h>

#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using rounds::RoundSync;

namespace {

constexpr std::size_t values = 500'000;  // half a megabyte a delta, four a state
constexpr std::uint32_t inner_steps = 20;

// Learns nothing, and is done at once, whatever its size. No delta is like another one.
class Slope final : public LocalModel {
 public:
  Slope(std::size_t node, std::uint64_t lives) : node_(node), trained_(lives * 1009) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    trained_ += steps;
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] +=
          1e-4f * static_cast<float>(steps) * static_cast<float>((i * 7 + node_ * 13 + trained_) % 101);
  }

 private:
  const std::size_t node_;
  std::size_t trained_;
};

std::unique_ptr<LocalModel> slope(std::size_t node, std::uint64_t lives) {
  return std::make_unique<Slope>(node, lives);
}

ChainWorldOptions over_lines(std::size_t nodes, double megabits, RoundSync sync,
                             Duration training = std::chrono::seconds(3)) {
  ChainWorldOptions o = test::lab_options(1, nodes);
  o.network.least_delay = o.network.most_delay = std::chrono::milliseconds(10);
  o.network.bytes_per_second = megabits * 1e6 / 8;
  o.network.passes_by = 16 << 10;
  o.initial.assign(values, 0.0f);
  o.chain.rules.most_tokens = 2 * inner_steps;
  o.training.sync = sync;
  o.training.tick = std::chrono::milliseconds(100);
  o.training.clock = {};
  o.training.clock.first_deadline = std::chrono::minutes(3);
  o.training.provisional_after = std::chrono::seconds(60);
  o.trainer.step_time = training / inner_steps;
  o.trainer.tokens_per_step = 1;
  return o;
}

std::string text(ChainWorld& world) {
  std::string all =
      fmt::format("{:.0f} s, {} rounds, {} carried", to_seconds(world.world().now().time_since_epoch()),
                  world.seen().rounds, world.seen().rows_carried);
  for (const auto& [round, count] : world.seen().contributors) all += fmt::format(", {}: {}", round, count);
  for (std::size_t i = 0; i < world.size(); ++i)
    if (world.running(i))
      all += fmt::format("; node {} counted {} times, left out {} times", i, world.training(i).view().counted,
                         world.training(i).view().left_out);
  return all;
}

bool is_safe(const ChainWorld& world) {
  return world.seen().conflicts + world.seen().twice + world.seen().wrong_anchors == 0;
}

class TestChainLines : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_line_sets_the_pace_data();
  void the_line_sets_the_pace();
  void a_node_that_was_away_is_in_step_again_data();
  void a_node_that_was_away_is_in_step_again();
  void one_slow_line_holds_nobody_up_for_long();
};

void TestChainLines::the_line_sets_the_pace_data() {
  QTest::addColumn<double>("megabits");
  QTest::addColumn<bool>("overlap");
  QTest::newRow("10 Mbit/s, plain") << 10.0 << false;
  QTest::newRow("10 Mbit/s, delayed-1") << 10.0 << true;
  // A round's bytes need ten times as long as its training.
  QTest::newRow("2 Mbit/s, delayed-1") << 2.0 << true;
}

// Each of seven that ask for everything at once waits long for each piece. Nobody is left out for it, and
// nothing is fetched twice.
void TestChainLines::the_line_sets_the_pace() {
  QFETCH(double, megabits);
  QFETCH(bool, overlap);
  ChainWorld world(over_lines(8, megabits, overlap ? RoundSync::Delayed : RoundSync::Plain), slope);
  world.start_all();
  constexpr std::uint64_t rounds = 3;
  const double of_line = 7 * values * 8 / (megabits * 1e6);
  const auto limit = std::chrono::seconds(static_cast<int>(double(rounds) * (of_line * 1.5 + 15)));
  const bool in_time = world.run_to_round(rounds, limit);
  const double sent = static_cast<double>(world.network().counters().bytes);
  const double needed = double(rounds) * 8 * 7 * values;
  const std::string all = fmt::format("{}; {:.2f} times the bytes", text(world), sent / needed);
  qInfo("%s", all.c_str());
  QVERIFY2(in_time && is_safe(world), all.c_str());
  QVERIFY2(world.seen().rows_carried == 0, all.c_str());
  for (std::uint64_t round = 1; round <= rounds; ++round)
    QVERIFY2(world.seen().contributors.at(round) == 8, all.c_str());
  QVERIFY2(sent < 1.15 * needed * (overlap ? 4.0 / 3 : 1), all.c_str());
}

void TestChainLines::a_node_that_was_away_is_in_step_again_data() {
  QTest::addColumn<bool>("overlap");
  QTest::addColumn<int>("away");
  QTest::newRow("plain, for a round") << false << 1;
  QTest::newRow("delayed-1, for four rounds") << true << 4;
}

// The state is as large as all payloads of a round, and has to be here before the round is over.
void TestChainLines::a_node_that_was_away_is_in_step_again() {
  QFETCH(bool, overlap);
  QFETCH(int, away);
  constexpr std::size_t last = 5;
  constexpr Duration training = std::chrono::seconds(16);
  ChainWorld world(over_lines(last + 1, 10, overlap ? RoundSync::Delayed : RoundSync::Plain, training),
                   slope);
  world.start_all();
  QVERIFY(world.run_to_round(2, std::chrono::minutes(5)));
  world.world().run_for(training / 2);
  world.kill(last);
  QVERIFY(world.run_to_round(world.round(0) + static_cast<std::uint64_t>(away), std::chrono::minutes(5)));
  world.world().run_for(training / 2);
  world.start(last);
  const MonotonicTime back = world.world().now();
  const bool counts =
      world.run_until([&] { return world.training(last).view().counted >= 3; }, std::chrono::minutes(4));
  const std::string all =
      fmt::format("after {:.0f} s: {}", to_seconds(world.world().now() - back), text(world));
  qInfo("%s", all.c_str());
  QVERIFY2(counts && is_safe(world), all.c_str());
  // From then on all are in.
  const std::uint64_t newest = world.round(0);
  QVERIFY(world.run_to_round(newest + 2, std::chrono::minutes(3)));
  QVERIFY2(world.seen().contributors.at(newest + 2) == last + 1, text(world).c_str());
}

// Its payload needs longer than several rounds of the others; it moves all the time.
void TestChainLines::one_slow_line_holds_nobody_up_for_long() {
  ChainWorld world(over_lines(5, 20, RoundSync::Plain), slope);
  world.network().set_line(static_cast<Host>(4), 0.5e6 / 8);
  world.start_all();
  // The first rounds have no measure yet: the slow one is waited for.
  world.world().run_for(std::chrono::seconds(240));
  const std::string all = text(world);
  qInfo("%s", all.c_str());
  QVERIFY2(world.seen().rounds >= 8 && is_safe(world), all.c_str());
  for (std::size_t i = 0; i < 4; ++i)
    QVERIFY2(world.training(i).view().counted + 1 >= world.seen().rounds, all.c_str());
}

}  // namespace

NS_TEST(TestChainLines)
#include "test_chain_lines.moc"
