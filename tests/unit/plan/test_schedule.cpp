// The throughput of given ranges against an independent maximum flow, and against the rules of a schedule.
#include <QtTest>

#include "core/plan/schedule.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/other_planners.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::plan;
using namespace neuroshard::plan::test;

namespace {

Chain chain_of_works(const std::vector<double>& works) {
  std::vector<Unit> units;
  for (const double work : works) units.push_back({"unit " + std::to_string(units.size()), work, 1});
  return Chain::of_units(units, std::vector<std::uint64_t>(works.size(), 1), 0, 1).value();
}

constexpr double plenty = 1e12;

}  // namespace

class TestSchedule : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void compute_alone_is_a_largest_flow() {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Rng rng(seed);
      std::vector<double> works(2 + rng.below(7));
      for (double& work : works) work = 1 + static_cast<double>(rng.below(5));
      const Chain chain = chain_of_works(works);
      std::vector<PlanPeer> peers(2 + rng.below(7));
      std::vector<Holder> holders;
      Holds held(peers.size(), std::vector<std::uint8_t>(works.size(), 0));
      for (std::size_t i = 0; i < peers.size(); ++i) {
        peers[i].speed = 1 + 10 * rng.uniform();
        peers[i].up = peers[i].down = plenty;
        UnitRange range;
        range.first = static_cast<std::uint32_t>(rng.below(works.size()));
        range.end = range.first + 1 + static_cast<std::uint32_t>(rng.below(works.size() - range.first));
        for (std::uint32_t unit = range.first; unit < range.end; ++unit) held[i][unit] = 1;
        holders.push_back({range, peers[i].speed, plenty});
      }
      const double expected = shared_throughput(chain, peers, held);
      const double found = best_schedule(chain, holders).throughput;
      QVERIFY2(std::abs(found - expected) <= 1e-5 * std::max(1.0, expected),
               qPrintable(QString("seed %1: %2, expected %3").arg(seed).arg(found).arg(expected)));
    }
  }

  void a_line_limits_what_crosses_a_boundary() {
    const Chain chain = chain_of_works({1, 1});
    // Alone on both units nothing crosses.
    QCOMPARE(std::round(best_schedule(chain, {{{0, 2}, 20, 3}}).throughput), 10.0);
    // In two stages each token crosses once.
    const Schedule two = best_schedule(chain, {{{0, 1}, 20, 3}, {{1, 2}, 20, plenty}});
    QVERIFY(two.throughput <= 3 * (1 + 1e-6) && two.throughput > 2.99);
    // A middle stage crosses twice.
    const Schedule middle = best_schedule(chain_of_works({1, 1, 1}),
                                          {{{0, 1}, 20, plenty}, {{1, 2}, 20, 3}, {{2, 3}, 20, plenty}});
    QVERIFY(middle.throughput <= 1.5 * (1 + 1e-6) && middle.throughput > 1.49);
  }

  void a_gap_passes_nothing_and_is_named() {
    const Schedule schedule =
        best_schedule(chain_of_works({1, 1, 1}), {{{0, 1}, 5, plenty}, {{2, 3}, 5, plenty}});
    QCOMPARE(schedule.throughput, 0.0);
    QCOMPARE(schedule.bottleneck, 1u);
    QCOMPARE(best_schedule(chain_of_works({1}), {}).throughput, 0.0);
  }

  void the_bottleneck_is_named() {
    const Schedule schedule = best_schedule(
        chain_of_works({1, 1, 1}), {{{0, 1}, 50, plenty}, {{1, 2}, 5, plenty}, {{2, 3}, 50, plenty}});
    QVERIFY(std::abs(schedule.throughput - 5) < 1e-4);
    QCOMPARE(schedule.bottleneck, 1u);
    QVERIFY(schedule.idle[0] > 44 && schedule.idle[1] < 1e-3);
  }

  // Adds up what a level schedule needs: no holder may be given more than its speed or its line.
  void a_schedule_keeps_speeds_and_lines() {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Rng rng(seed);
      const Chain chain = chain_of_works({1, 2, 2, 2, 2, 3});
      std::vector<Holder> holders;
      double lines = 0;
      for (int i = 0; i < 12; ++i) {
        UnitRange range;
        range.first = static_cast<std::uint32_t>(rng.below(6));
        range.end = range.first + 1 + static_cast<std::uint32_t>(rng.below(6 - range.first));
        holders.push_back({range, 1 + 10 * rng.uniform(), 0.5 + 3 * rng.uniform()});
        if (chain.crossings(range) > 0) lines += holders.back().line;
      }
      const Schedule schedule = best_schedule(chain, holders);
      double whole = 0;
      for (std::size_t i = 0; i < holders.size(); ++i) {
        QVERIFY(schedule.idle[i] >= -1e-6);
        const std::uint32_t crossings = chain.crossings(holders[i].range);
        // A rate of its peak enters or leaves over the line at least once for each inner end.
        if (crossings > 0) QVERIFY(schedule.peak[i] * crossings <= holders[i].line * (1 + 1e-6));
        if (crossings == 0) whole += holders[i].speed / chain.work(chain.whole());
      }
      // Each token of a pipeline crosses one boundary at least, out of one node and into another.
      QVERIFY(schedule.throughput <= whole + lines / 2 + 1e-6);
    }
  }
};

NS_TEST(TestSchedule)
#include "test_schedule.moc"
