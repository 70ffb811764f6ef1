// Real processes whose rounds overlap (sync "delayed-1") and whose deltas are sparse (codec "topk", with
// error feedback): two nodes certify the same anchors round after round, one is killed in the middle and goes
// on with what it had not sent yet, and training goes on while the other's delta is missing.
#include <QTest>
#include <algorithm>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsOverlap : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    const QByteArray trouble = run_.make("overlap", "200", {"--sync", "delayed-1", "--codec", "topk"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
  }

  void two_train_together() {
    QCOMPARE(run_.start("a"), QByteArray());
    QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
    QCOMPARE(run_.start("b"), QByteArray());
    QVERIFY(run_.together({"a", "b"}));
    QVERIFY(run_.together({"a", "b"}, run_.round("a") + 2));
    for (const char* name : {"a", "b"}) {
      const QJsonObject seen = run_.rounds(name);
      QVERIFY2(seen["contributed"].toInt() >= 2 && seen["corruptions"].toInt() == 0,
               QJsonDocument(seen).toJson().constData());
    }
  }

  // One stands still: the other gives its delta and trains on, a round further; only then it waits. The test reads
  // the status of each twice a second, so a round that is over before that is made once more.
  void the_status_says_that_training_goes_on_meanwhile() {
    const QDeadlineTimer deadline(RoundsRun::patience_ms);
    QSet<QString> seen;
    const auto trained_on = [&] {
      return std::any_of(seen.begin(), seen.end(), [](const QString& phase) {
        return phase == "training on while the others finish the round" ||
               phase == "training on while the members agree on the round";
      });
    };
    const auto waited = [&] {
      return seen.contains("waiting for the other members") || seen.contains("agreeing on the round");
    };
    while (!trained_on() && !deadline.hasExpired()) {
      seen.clear();
      run_.node("b").hold();
      while (!waited() && !deadline.hasExpired()) seen.insert(run_.rounds("a")["phase"].toString());
      run_.node("b").go_on();
      QVERIFY(run_.together({"a", "b"}, run_.round("a") + 1));
    }
    QVERIFY2(trained_on() && waited(), QStringList(seen.begin(), seen.end()).join("; ").toUtf8().constData());
  }

  void who_is_killed_in_mid_round_goes_on() {
    const auto trains = [this] { return run_.rounds("b")["phase"].toString() == "training"; };
    QVERIFY(neuroshard::testing::seen_once(trains, RoundsRun::patience_ms));
    run_.node("b").kill_now();
    QVERIFY(QFile::exists(run_.path("b") + "/chain/own/learners"));
    const int before = run_.round("a");
    QCOMPARE(run_.start("b"), QByteArray());
    QVERIFY(run_.together({"a", "b"}, before + 2));
    QFile log(run_.path("b") + "/logs/neuroshardd.log");
    QVERIFY(log.open(QIODevice::ReadOnly));
    const QByteArray said = log.readAll();
    QVERIFY(!said.contains("is not used") && !said.contains("error-feedback buffer of"));
  }

  void all_certified_the_same() {
    const auto at_a = run_.certified("a"), at_b = run_.certified("b");
    int of_two = 0;
    QSet<QString> anchors;
    for (auto it = at_a.begin(); it != at_a.end(); ++it) {
      anchors.insert(it->anchor);
      if (!at_b.contains(it.key())) continue;
      QCOMPARE(at_b.value(it.key()).anchor, it->anchor);
      QCOMPARE(at_b.value(it.key()).contributors, it->contributors);
      if (it->contributors == 2) ++of_two;
    }
    QCOMPARE(anchors.size(), at_a.size());  // each round moved the model
    QVERIFY2(of_two >= 4, QByteArray::number(of_two).constData());
  }

 private:
  RoundsRun run_;
};

NS_TEST(TestRoundsOverlap)
#include "test_rounds_overlap.moc"
