// Nodes of the chain that train together, on virtual time and with real signatures: clean runs, deaths,
// newcomers and open starts. NS_LONG=1 takes ten times the seeds (tests/long.sh rounds).
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::lab_options;
using test::lab_round;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

class TestChainRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void four_nodes_count_everybody_in_each_round();
  void open_start_makes_one_genesis();
  void lost_messages_cost_some_seconds();
  void one_of_three_that_restarts_is_told_again();
};

void TestChainRounds::four_nodes_count_everybody_in_each_round() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    ChainLab lab(lab_options(seed, 4));
    QVERIFY2(lab.world.run_to_round(6, 30 * lab_round), lab.text("six rounds").c_str());
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().twice, 0u);
    QCOMPARE(lab.world.seen().rows_carried, 0u);
    QVERIFY2(lab.world.seen().contributions >= 22, lab.text("nearly all count").c_str());
    lab.world.run_until([] { return false; }, test::lab_second);
    QCOMPARE(lab.world.agreement_rate(), 1.0);
  }
}

void TestChainRounds::open_start_makes_one_genesis() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    auto options = lab_options(seed, 3);
    options.open_start = true;
    ChainLab lab(options);
    QVERIFY2(lab.world.run_to_round(3, 40 * lab_round), lab.text("three rounds").c_str());
    QCOMPARE(lab.world.seen().conflicts, 0u);
    for (std::size_t node = 1; node < 3; ++node)
      QCOMPARE(lab.world.chain(node).history()->genesis(), lab.world.chain(0).history()->genesis());
    QCOMPARE(lab.world.chain(0).view().voters, 3u);
  }
}

// All three must contribute and sign. The one that restarts has forgotten what it took before; without that the
// round would last until its deadline, half an hour.
void TestChainRounds::one_of_three_that_restarts_is_told_again() {
  for (int moment = 0; moment < 12; ++moment) {
    auto options = lab_options(7 + static_cast<std::uint64_t>(moment), 3);
    options.training.clock.first_deadline = std::chrono::minutes(30);
    ChainLab lab(options);
    QVERIFY2(lab.world.run_to_round(1, 30 * lab_round), lab.text("the first round").c_str());
    lab.world.run_until([] { return false; }, std::chrono::milliseconds(3400 + 150 * moment));
    const std::uint64_t before = lab.world.round(1);
    lab.world.kill(0);
    lab.world.run_until([] { return false; }, test::lab_second);
    lab.world.start(0);
    QVERIFY2(lab.world.run_to_round(before + 3, 25 * lab_round), lab.text("after the restart").c_str());
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().twice, 0u);
  }
}

// Of all messages 30 % are lost, so half of the calls fail. Their deadlines, one after the other, are what it costs.
void TestChainRounds::lost_messages_cost_some_seconds() {
  double sum = 0;
  constexpr int worlds = 4, rounds = 10;
  for (int seed = 1; seed <= worlds; ++seed) {
    auto options = lab_options(static_cast<std::uint64_t>(seed), 4);
    options.network.loss = 0.3;
    ChainLab lab(options);
    const auto began = lab.world.world().now();
    QVERIFY2(lab.world.run_to_round(rounds, rounds * 30 * lab_round), lab.text("ten rounds").c_str());
    const double each = to_seconds(lab.world.world().now() - began) / rounds;
    qInfo("seed %d: %.1f s a round", seed, each);
    sum += each;
    QCOMPARE(lab.world.seen().conflicts + lab.world.seen().twice, 0u);
  }
  qInfo("%.1f s a round", sum / worlds);
  QVERIFY2(sum / worlds < 20, "a round");
}

}  // namespace

NS_TEST(TestChainRounds)
#include "test_chain_rounds.moc"
