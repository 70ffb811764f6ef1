// Memory in rounds of two real nodes. One of them has a limit that a node without one exceeds, as the other node
// shows, so the test fails when the flag is ignored. And the memory plan expects the peak that the kernel counts.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_in_rounds_stays_within_its_limit();
  void the_plan_expects_the_peak_of_a_node_in_rounds();

 private:
  // In bytes; 0: the log names none.
  static qint64 planned(const RoundsRun& run, const QString& name) {
    QFile log(run.path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) return 0;
    static const QRegularExpression words("the memory plan expects (\\d+) MiB at the peak");
    return words.match(QString::fromUtf8(log.readAll())).captured(1).toLongLong() << 20;
  }

  RoundsRun run_;
};

void TestRoundsMemory::a_node_in_rounds_stays_within_its_limit() {
  constexpr qint64 mib = 1 << 20, limit = 420 * mib;
  // Few weights and long sequences: the micro-batch decides how much memory the node takes.
  run_.model = {"--layers",  "2", "--hidden",   "64",  "--head-dim",     "16",   "--vocab", "300",
                "--experts", "2", "--sequence", "512", "--batch-tokens", "32768"};
  QCOMPARE(run_.make("memory", "1"), QByteArray());
  run_.node_words = {"--max-micro-batch", "64", "--precision", "fp32"};
  QCOMPARE(run_.start("free"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("free") >= 1, RoundsRun::patience_ms);
  run_.node_words += {"--memory-limit", QString::number(limit)};
  QCOMPARE(run_.start("limited"), QByteArray());
  QVERIFY(run_.together({"free", "limited"}));
  QVERIFY(run_.together({"free", "limited"}, run_.round("limited") + 1));
  const qint64 limited = run_.peak_resident("limited"), free = run_.peak_resident("free");
  qInfo("MEASURED limit %lld MiB: peak resident %lld MiB, without a limit %lld MiB", limit / mib,
        limited / mib, free / mib);
  QVERIFY(limited > 0 && limited <= limit);
  QVERIFY(free > limit + limit / 4);
}

// Large enough that the weights decide.
void TestRoundsMemory::the_plan_expects_the_peak_of_a_node_in_rounds() {
  run_.kill_all();
  RoundsRun run;
  run.model = {
      "--layers",       "6",   "--hidden",  "512", "--head-dim",          "32", "--vocab",       "1024",
      "--sequence",     "128", "--experts", "1",   "--experts-per-token", "1",  "--ffn-percent", "300",
      "--batch-tokens", "128"};
  QCOMPARE(run.make("plan", "4"), QByteArray());
  run.node_words = {"--max-micro-batch", "1", "--precision", "fp32"};
  QCOMPARE(run.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run.start("b"), QByteArray());
  QVERIFY(run.together({"a", "b"}));
  QVERIFY(run.together({"a", "b"}, run.round("a") + 1));
  for (const char* name : {"a", "b"}) {
    const qint64 expected = planned(run, name), peak = run.peak_resident(name);
    const double off = 100.0 * (double(expected) / double(peak) - 1);
    qInfo("MEASURED plan %lld MiB, peak %lld MiB: %+.1f %%", expected >> 20, peak >> 20, off);
    QVERIFY2(expected > 0 && qAbs(off) <= 10, qPrintable(QString::number(off)));
  }
}

NS_TEST(TestRoundsMemory)
#include "test_rounds_memory.moc"
