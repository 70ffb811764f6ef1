// Real processes on the loopback interface whose network has a chain: they begin it together, certify rounds
// with equal anchors, outlive a kill, go on without a node that stops, and take in a candidate.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsChain : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void three_begin_together();
  void one_that_is_killed_goes_on_after_a_restart();
  void a_later_node_follows();
  void one_that_stops_is_not_waited_for();
  void all_certified_the_same();

 private:
  // Each of these holds the anchor of a round from `round` on.
  bool hold(const QStringList& names, int round) const {
    for (const QDeadlineTimer deadline(RoundsRun::patience_ms); !deadline.hasExpired(); QTest::qWait(200)) {
      const bool all = std::all_of(names.begin(), names.end(), [&](const QString& name) {
        const QMap<int, CertifiedRound> rounds = run_.certified(name);
        return !rounds.isEmpty() && rounds.lastKey() >= round;
      });
      if (all) return true;
    }
    for (const QString& name : names)
      qWarning().noquote() << name << run_.certified(name).keys()
                           << QJsonDocument(run_.rounds(name)).toJson(QJsonDocument::Compact)
                           << run_.crashes(name);
    return false;
  }
  int newest(const QString& name) const {
    const QMap<int, CertifiedRound> rounds = run_.certified(name);
    return rounds.isEmpty() ? 0 : rounds.lastKey();
  }

  RoundsRun run_;
};

void TestRoundsChain::initTestCase() {
  QCOMPARE(run_.make("chain", "60",
                     {"--voters", "open", "--block-time-s", "5", "--stall-after-s", "120",
                      "--admission-contributions", "2"}),
           QByteArray());
}

void TestRoundsChain::three_begin_together() {
  for (const char* name : {"a", "b", "c"}) run_.launch(name);
  for (const char* name : {"a", "b", "c"}) QCOMPARE(run_.joined(name), QByteArray());
  QVERIFY(hold({"a", "b", "c"}, 4));
  QVERIFY(run_.together({"a", "b", "c"}));
  // Each gives its payload to two others and takes two: about as much goes out as comes in.
  const QJsonObject rounds = run_.rounds("a");
  const double sent = rounds["bytes_sent"].toDouble(), received = rounds["bytes_received"].toDouble();
  QVERIFY2(received > 0 && sent > received / 3 && sent < 3 * received,
           qPrintable(QString("%1 sent, %2 received").arg(sent).arg(received)));
}

void TestRoundsChain::one_that_is_killed_goes_on_after_a_restart() {
  run_.node("c").kill_now();
  const int before = newest("a");
  QCOMPARE(run_.start("c"), QByteArray());
  QVERIFY(hold({"a", "b", "c"}, before + 3));
  QVERIFY(run_.together({"a", "b", "c"}, before));
}

void TestRoundsChain::a_later_node_follows() {
  QCOMPARE(run_.start("d"), QByteArray());
  QVERIFY(hold({"d"}, newest("a") + 2));
  const auto follows = [this] {
    const QJsonObject seen = run_.rounds("d");
    return seen["member"].toBool() && seen["agrees"].toBool();
  };
  QVERIFY(neuroshard::testing::seen_once(follows, RoundsRun::patience_ms));
}

void TestRoundsChain::one_that_stops_is_not_waited_for() {
  run_.node("c").terminate();
  const ProcessResult ended = run_.node("c").finish();
  QVERIFY2(ended.ok(), ended.text().constData());
  QVERIFY(hold({"a", "b"}, newest("a") + 3));
}

void TestRoundsChain::all_certified_the_same() {
  const QMap<int, CertifiedRound> at_a = run_.certified("a");
  int compared = 0;
  for (const char* other : {"b", "c", "d"}) {
    const QMap<int, CertifiedRound> rounds = run_.certified(other);
    for (auto it = rounds.begin(); it != rounds.end(); ++it) {
      if (!at_a.contains(it.key())) continue;
      QCOMPARE(it->anchor, at_a[it.key()].anchor);
      ++compared;
    }
  }
  QVERIFY2(compared >= 8, QByteArray::number(compared).constData());
}

NS_TEST(TestRoundsChain)
#include "test_rounds_chain.moc"
