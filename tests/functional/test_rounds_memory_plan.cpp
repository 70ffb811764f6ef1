// The memory plan in rounds: of two real nodes it expects the peak that the kernel counts.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsMemoryPlan : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_plan_expects_the_peak_of_a_node_in_rounds();

 private:
  // In bytes; 0: the log names none.
  qint64 planned(const QString& name) const {
    QFile log(run_.path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) return 0;
    static const QRegularExpression words("the memory plan expects (\\d+) MiB at the peak");
    return words.match(QString::fromUtf8(log.readAll())).captured(1).toLongLong() << 20;
  }

  RoundsRun run_;
};

// Large enough that the weights decide.
void TestRoundsMemoryPlan::the_plan_expects_the_peak_of_a_node_in_rounds() {
  run_.model = {
      "--layers",       "6",   "--hidden",  "512", "--head-dim",          "32", "--vocab",       "1024",
      "--sequence",     "128", "--experts", "1",   "--experts-per-token", "1",  "--ffn-percent", "300",
      "--batch-tokens", "128"};
  run_.founder = "a";
  QCOMPARE(run_.make("plan", "4"), QByteArray());
  run_.node_words = {"--max-micro-batch", "1", "--precision", "fp32"};
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
  QVERIFY(run_.together({"a", "b"}, run_.round("a") + 1));
  for (const char* name : {"a", "b"}) {
    const qint64 expected = planned(name), peak = run_.peak_resident(name);
    const double off = 100.0 * (double(expected) / double(peak) - 1);
    qInfo("MEASURED plan %lld MiB, peak %lld MiB: %+.1f %%", expected >> 20, peak >> 20, off);
    QVERIFY2(expected > 0 && qAbs(off) <= 10, qPrintable(QString::number(off)));
  }
}

NS_TEST(TestRoundsMemoryPlan)
#include "test_rounds_memory_plan.moc"
