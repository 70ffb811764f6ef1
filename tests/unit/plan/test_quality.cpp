// How near plans for heterogeneous volunteers come to the certified bound, and to other planners. The goal is 0.95 of the
// bound from 30 peers on, and 0.90 below. Not every plan reaches it, so the test prints how many do, and holds each to
// what was reached when it was written; build/release/tests/bench_plan prints each plan.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/plan/other_planners.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::plan;
using namespace neuroshard::plan::test;

class TestQuality : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void plans_are_near_the_bound_data() {
    QTest::addColumn<double>("line_least");
    QTest::addColumn<double>("least");
    QTest::addColumn<int>("reach");
    QTest::newRow("lines of 10 Mbit/s and more") << 10.0 << 0.81 << 22;
    QTest::newRow("lines of 100 Mbit/s and more") << 100.0 << 0.90 << 27;
  }
  void plans_are_near_the_bound() {
    QFETCH(double, line_least);
    QFETCH(double, least);
    QFETCH(int, reach);
    const GrowthRules rules = mainnet_rules();
    PeerKind kind;
    kind.line_least = line_least;
    int reached = 0, plans = 0;
    double worst = 1, sum = 0, greedy_sum = 0, greedy_worst = 1e9;
    for (const std::size_t count : {3, 5, 8, 12, 20, 30, 50, 100, 300}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        Rng rng(seed * 1000 + count);
        const std::vector<PlanPeer> peers = random_peers(rng, count, kind);
        const Chain chain = chain_of(rules, shape_for(rules, peers));
        PlanRequest request;
        request.chain = &chain;
        request.peers = peers;
        const auto plan = make_plan(request);
        QVERIFY2(plan.ok(), plan.ok() ? "" : plan.error().message.c_str());
        QVERIFY(plan->least_owners >= 2);
        const double ratio = plan->throughput / plan->bound.throughput;
        QVERIFY(ratio <= 1);
        const double greedy = plan->throughput / shared_throughput(chain, peers, greedy_holds(chain, peers));
        ++plans;
        if (ratio >= (count >= 30 ? 0.95 : 0.90)) ++reached;
        worst = std::min(worst, ratio);
        sum += ratio;
        greedy_sum += greedy;
        greedy_worst = std::min(greedy_worst, greedy);
      }
    }
    qInfo(
        "%d of %d plans reach the goal; part of the bound: worst %.3f, mean %.3f; times the seed's greedy: "
        "worst %.2f, "
        "mean %.2f",
        reached, plans, worst, sum / plans, greedy_worst, greedy_sum / plans);
    QVERIFY2(worst >= least, qPrintable(QString::number(worst)));
    QVERIFY2(reached >= reach, qPrintable(QString::number(reached)));
    QVERIFY(sum / plans >= 0.96);
    // The greedy's holders are judged without lines, and reach the bound where few peers hold everything.
    QVERIFY(greedy_worst >= 0.99 && greedy_sum / plans >= 1.5);
  }
};

NS_TEST(TestQuality)
#include "test_quality.moc"
