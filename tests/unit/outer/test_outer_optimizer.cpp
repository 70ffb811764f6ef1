// The outer step: the direction that the original documents have wrong, PyTorch's convention, and its limits.
#include <QTest>
#include <vector>

#include "core/outer/outer_optimizer.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::outer;

class TestOuterOptimizer : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // One worker, lr 1, mu 0: the new anchor is the worker's own weights.
  void one_worker_reproduces_itself() {
    const std::vector<float> local{0.5f, -1.25f, 3.0f, 0.0f};
    std::vector<float> anchor{1.0f, -1.0f, 2.0f, 0.25f}, momentum(4, 0.0f), delta(4);
    for (std::size_t i = 0; i < 4; ++i) delta[i] = anchor[i] - local[i];
    QVERIFY(outer_step({1.0f, 0.0f}, {delta.data(), 4}, {momentum.data(), 4}, {anchor.data(), 4}).ok());
    QCOMPARE(anchor, local);
  }

  // By hand: D = 2 twice, lr 0.5, mu 0.5 → v 2, step 1.5; v 3, step 1.75.
  void momentum_follows_nesterov() {
    const float d = 2;
    float v = 0, anchor = 10;
    QVERIFY(outer_step({0.5f, 0.5f}, {&d, 1}, {&v, 1}, {&anchor, 1}).ok());
    QCOMPARE(v, 2.0f);
    QCOMPARE(anchor, 8.5f);
    QVERIFY(outer_step({0.5f, 0.5f}, {&d, 1}, {&v, 1}, {&anchor, 1}).ok());
    QCOMPARE(v, 3.0f);
    QCOMPARE(anchor, 6.75f);
  }

  void bad_arguments_change_nothing() {
    const float d[2] = {1, 1};
    float v[2] = {0, 0}, anchor[2] = {4, 5};
    for (const OuterOptimizer bad : {OuterOptimizer{0, 0}, {3, 0}, {1, 1}, {1, -0.5f}, {NAN, 0}, {1, NAN}})
      QVERIFY(!outer_step(bad, {d, 2}, {v, 2}, {anchor, 2}).ok());
    QVERIFY(!outer_step({1, 0}, {d, 1}, {v, 2}, {anchor, 2}).ok());
    QVERIFY(!outer_step({1, 0}, {d, 2}, {v, 1}, {anchor, 2}).ok());
    QCOMPARE(anchor[0], 4.0f);
    QCOMPARE(anchor[1], 5.0f);
  }
};

NS_TEST(TestOuterOptimizer)
#include "test_outer_optimizer.moc"
