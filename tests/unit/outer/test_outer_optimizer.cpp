// The outer step: the direction that the original documents have wrong, PyTorch's convention, and its limits.
#include <QTest>
#include <cfenv>
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

  void the_rounding_mode_of_the_thread_has_no_influence() {
    const auto step = [] {
      std::vector<float> anchor{0.3f, -1.7f, 2.9f, 0.01f}, momentum{0.7f, -0.1f, 0.9f, -0.6f};
      const std::vector<float> delta{0.1f, 0.2f, -0.3f, 0.0007f};
      const auto done = outer_step({0.7f, 0.9f}, {delta.data(), 4}, {momentum.data(), 4}, {anchor.data(), 4});
      if (!done.ok()) qFatal("no step");
      anchor.insert(anchor.end(), momentum.begin(), momentum.end());
      return anchor;
    };
    const std::vector<float> usual = step();
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const std::vector<float> other = step();
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      QVERIFY(other == usual);
      QCOMPARE(after, mode);
    }
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
