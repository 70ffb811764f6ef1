// The seed's validation as evidence: its figures, and why it is no gate.
#include <QTest>
#include <cmath>
#include <limits>
#include <vector>

#include "core/outer/evidence.h"
#include "core/outer/soft_learner.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::outer;

class TestEvidence : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void by_hand() {
    const std::vector<float> delta{3, 4, 0, 0}, reference{0, 1, 0, 0};
    const auto evidence = compare(delta, reference);
    QVERIFY(evidence.ok());
    QCOMPARE(evidence->cosine, 0.8);
    QCOMPARE(evidence->norm_ratio, 5.0);
    QCOMPARE(evidence->variance_ratio, (25.0 / 4 - 49.0 / 16) / (1.0 / 4 - 1.0 / 16));
    QVERIFY(!is_usual(Evidence{0.29, 1, 1}));
    QVERIFY(!is_usual(Evidence{0.5, 0.09, 1}));
    QVERIFY(!is_usual(Evidence{0.5, 11, 1}));
    QVERIFY(!is_usual(Evidence{0.5, 1, 101}));
    QVERIFY(is_usual(Evidence{0.5, 1, 1}));
  }

  void zeros_and_bad_input() {
    const std::vector<float> zero(3, 0.0f), one(3, 1.0f), bad{1, NAN, 1};
    QCOMPARE(compare(zero, one)->cosine, 0.0);
    QCOMPARE(compare(zero, one)->norm_ratio, 0.0);
    QVERIFY(std::isinf(compare(one, zero)->norm_ratio));
    QCOMPARE(compare(zero, zero)->norm_ratio, 1.0);
    QVERIFY(!compare(one, Span<const float>(zero).first(2)).ok());
    QVERIFY(!compare({}, {}).ok());
    QVERIFY(!compare(bad, one).ok());
    QVERIFY(!compare(one, bad).ok());
  }

  // Honest workers halfway through: the seed's gate would turn most pairs away.
  void a_gate_would_reject_the_honest() {
    const auto task = *SoftTask::make({});
    std::vector<float> anchor = task->initial_weights();
    std::vector<SoftLearner> workers;
    for (std::uint64_t i = 0; i < 6; ++i) workers.emplace_back(task, i, SoftLearnerOptions{});
    std::vector<std::vector<float>> deltas(6, std::vector<float>(anchor.size()));
    int usual = 0, pairs = 0;
    for (int round = 0; round < 40; ++round) {
      for (std::size_t i = 0; i < 6; ++i) {
        workers[i].start_from(anchor);
        workers[i].train(10);
        workers[i].delta(anchor, deltas[i]);
      }
      for (std::size_t c = 0; c < anchor.size(); ++c)
        for (std::size_t i = 0; i < 6; ++i) anchor[c] -= deltas[i][c] / 6;
      if (round < 20) continue;
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < i; ++j) {
          usual += is_usual(*compare(deltas[i], deltas[j]));
          ++pairs;
        }
    }
    QVERIFY2(usual * 5 < pairs, qPrintable(QString("%1 of %2").arg(usual).arg(pairs)));
  }
};

NS_TEST(TestEvidence)
#include "test_evidence.moc"
