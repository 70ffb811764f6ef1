// Memory in rounds.
//
// The limit: two real nodes train one network. One of them has a limit that a node without one exceeds, as the
// other node shows. So the test fails when the flag is ignored.
//
// The plan: the node without a limit takes what its memory plan expects. Large models, and rounds with more members, are
// in `sh tests/long.sh rounds-memory`.
#include <QRegularExpression>
#include <QTest>
#include <cmath>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// What a node's memory plan expects at the peak, in bytes; 0: its log has no plan.
qint64 planned_resident(const QString& folder) {
  QFile log(folder + "/logs/neuroshardd.log");
  if (!log.open(QIODevice::ReadOnly)) return 0;
  const QRegularExpression plan("the memory plan expects (\\d+) MiB");
  return plan.match(QString::fromUtf8(log.readAll())).captured(1).toLongLong() << 20;
}

}  // namespace

class TestRoundsMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_in_rounds_stays_within_its_limit();
};

void TestRoundsMemory::a_node_in_rounds_stays_within_its_limit() {
  constexpr qint64 mib = 1 << 20, limit = 420 * mib;
  RoundsRun run;
  // Few weights and long sequences: the micro-batch decides how much memory the node takes.
  run.model = {"--layers",  "2", "--hidden",   "64",  "--head-dim",     "16",   "--vocab", "300",
               "--experts", "2", "--sequence", "512", "--batch-tokens", "32768"};
  QCOMPARE(run.make("memory", "1"), QByteArray());
  run.node_words = {"--max-micro-batch", "64", "--precision", "fp32"};
  QCOMPARE(run.start("free"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run.round("free") >= 1, RoundsRun::patience_ms);
  run.node_words += {"--memory-limit", QString::number(limit)};
  QCOMPARE(run.start("limited"), QByteArray());
  QVERIFY(run.together({"free", "limited"}));
  QVERIFY(run.together({"free", "limited"}, run.round("limited") + 1));
  const qint64 limited = run.peak_resident("limited"), free = run.peak_resident("free");
  qInfo("MEASURED limit %lld MiB: peak resident %lld MiB, without a limit %lld MiB", limit / mib,
        limited / mib, free / mib);
  QVERIFY(limited > 0 && limited <= limit);
  QVERIFY(free > limit + limit / 4);
  const double planned = static_cast<double>(planned_resident(run.path("free"))),
               off = planned / static_cast<double>(free) - 1;
  qInfo("MEASURED planned %.0f MiB: %+.1f %%", planned / mib, 100 * off);
  QVERIFY(std::abs(off) <= 0.1);
}

NS_TEST(TestRoundsMemory)
#include "test_rounds_memory.moc"
