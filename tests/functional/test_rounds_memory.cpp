// The memory limit in rounds: two real nodes train one network. One of them has a limit that a node without one
// exceeds, as the other node shows. So the test fails when the flag is ignored.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_in_rounds_stays_within_its_limit();

 private:
  RoundsRun run_;
};

void TestRoundsMemory::a_node_in_rounds_stays_within_its_limit() {
  constexpr qint64 mib = 1 << 20, limit = 420 * mib;
  // Few weights and long sequences: the micro-batch decides how much memory the node takes.
  run_.model = {"--layers",  "2", "--hidden",   "64",  "--head-dim",     "16",   "--vocab", "300",
                "--experts", "2", "--sequence", "512", "--batch-tokens", "32768"};
  run_.founder = "free";
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

NS_TEST(TestRoundsMemory)
#include "test_rounds_memory.moc"
