// The user's limits on the disk in rounds: of two real nodes one has a limit. When it is reached, that node pauses with
// the reason, the other goes on, and a larger limit brings it back. The node without a limit goes beyond, so the
// test fails when the rule is ignored.
#include <QTest>
#include <QtEndian>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr qint64 block_bytes = 24 << 10;  // at most: of two blocks, their votes and the node's own records

}  // namespace

class TestRoundsDisk : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_round_is_described_before_joining();
  void a_used_up_write_budget_pauses_the_rounds();
  void a_restart_does_not_give_the_budget_again();
  void with_a_larger_budget_they_go_on();
  void a_reached_disk_limit_pauses_as_well();
  void writes_are_what_was_said();

 private:
  bool set(const QString& setting, const QString& value) const {
    return run_node({"set", setting, value, "--data-dir", run_.path("limited")}).ok();
  }
  // Waits until the limited node says why it pauses, with these words.
  bool pauses(const QString& words) const {
    return QTest::qWaitFor(
        [&] {
          const QJsonObject rounds = run_.rounds("limited");
          return rounds["trouble"].toString().contains(words) &&
                 rounds["phase"].toString() == "paused until there is room on the disk";
        },
        RoundsRun::patience_ms);
  }
  QByteArray stop(const QString& name) {
    run_.node(name).terminate();
    const ProcessResult ended = run_.node(name).finish();
    return ended.ok() ? QByteArray() : ended.text();
  }
  // Exact after a clean stop.
  qint64 written_today(const QString& name) const {
    QFile file(run_.path(name) + "/writes.day");
    if (!file.open(QIODevice::ReadOnly)) return -1;
    const QByteArray bytes = file.readAll();
    return bytes.size() == 16 && bytes.startsWith("NSWD") ? qFromLittleEndian<qint64>(bytes.constData() + 8)
                                                          : -1;
  }

  RoundsRun run_;
  QJsonObject round_;  // as it is described
  qint64 budget_ = 0, parameters_ = 0;
  int begun_ = 0;
};

void TestRoundsDisk::a_round_is_described_before_joining() {
  run_.hidden = "64";
  run_.founder = "free";
  QCOMPARE(run_.make("disk", "2", {"--block-time-s", "1", "--stall-after-s", "10"}), QByteArray());
  const ProcessResult shown = run_node({"network", "show", run_.profile(), "--json"});
  const QJsonObject profile = json_lines(shown.out).value(0);
  round_ = profile["round"].toObject();
  parameters_ = profile["parameters"].toInteger();
  QCOMPARE(round_["members"].toInt(), 4);
  // Weights, momentum, an int8 delta and a checkpoint; three deltas to and from the others.
  QVERIFY2(round_["written_bytes"].toInteger() > (9 + 12) * parameters_, shown.out.constData());
  QVERIFY2(round_["sent_bytes"].toInteger() > 3 * parameters_, shown.out.constData());
  QCOMPARE(round_["received_bytes"].toInteger(), round_["sent_bytes"].toInteger());
  const QByteArray text = run_node({"network", "show", run_.profile()}).out;
  QVERIFY2(text.contains("written to the disk"), text.constData());
  QVERIFY(!json_lines(run_node({"network", "show", "solo", "--json"}).out).value(0)["round"].isObject());
}

void TestRoundsDisk::a_used_up_write_budget_pauses_the_rounds() {
  QCOMPARE(run_.start("free"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("free") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("limited"), QByteArray());
  budget_ = 6 * round_["written_bytes"].toInteger();
  QVERIFY(set("daily_write_budget", QString::number(budget_)));
  QVERIFY(pauses("today's write budget"));
  const auto alerted = [this] {
    return QJsonDocument(run_.status("limited")["alerts"].toArray()).toJson().contains("rounds_trouble");
  };
  QVERIFY(neuroshard::testing::seen_once(alerted, RoundsRun::patience_ms));
  const int contributed = run_.rounds("limited")["contributed"].toInt();
  QVERIFY(contributed >= 1);
  // The other one goes on by itself.
  const int round = run_.round("free");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("free") >= round + 8, RoundsRun::patience_ms);
  QCOMPARE(run_.rounds("limited")["contributed"].toInt(), contributed);
  QCOMPARE(run_.rounds("free")["trouble"].toString(), QString());
}

void TestRoundsDisk::a_restart_does_not_give_the_budget_again() {
  QCOMPARE(stop("limited"), QByteArray());
  const qint64 checkpoint = 13 * parameters_;  // at the end, whatever the budget says
  // Of the other node's rounds, which this one follows meanwhile.
  const qint64 blocks = (run_.round("free") + 10) * block_bytes;
  const qint64 written = written_today("limited");
  qInfo("MEASURED %lld bytes written; budget %lld, a checkpoint %lld, blocks and votes at most %lld", written,
        budget_, checkpoint, blocks);
  QVERIFY(written > 0 && written <= budget_ + checkpoint + blocks);
  QCOMPARE(run_.start("limited"), QByteArray());
  QVERIFY(pauses("today's write budget"));
}

void TestRoundsDisk::with_a_larger_budget_they_go_on() {
  QVERIFY(set("daily_write_budget", "1GiB"));
  QVERIFY(run_.together({"free", "limited"}, run_.round("free")));
  QCOMPARE(run_.rounds("limited")["trouble"].toString(), QString());
}

void TestRoundsDisk::a_reached_disk_limit_pauses_as_well() {
  QVERIFY(set("disk_limit", "64KiB"));
  QVERIFY(pauses("disk_limit"));
  QVERIFY(set("disk_limit", "0"));
  QVERIFY(run_.together({"free", "limited"}, run_.round("free")));
}

void TestRoundsDisk::writes_are_what_was_said() {
  QCOMPARE(stop("free"), QByteArray());
  const int rounds = run_.certified("free").lastKey();  // those that left the anchor as it is included
  const qint64 written = written_today("free"), most = round_["written_bytes"].toInteger();
  qInfo("MEASURED %lld bytes in %d rounds: %lld a round, at most %lld said", written, rounds,
        written / rounds, most);
  QVERIFY(written > budget_);  // without a limit it wrote more
  QVERIFY(written <= (rounds + 3) * most);
  QVERIFY(written >= rounds * most / 2);
}

NS_TEST(TestRoundsDisk)
#include "test_rounds_disk.moc"
