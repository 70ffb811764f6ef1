// Two real processes that have no tracker, only each other: the one that was there first learns who has come,
// they train one model, and who finishes completes the round that the other counts on.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsPair : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_find_each_other_without_a_tracker();
  void who_finishes_completes_the_round();

 private:
  RoundsRun run_;
};

void TestRoundsPair::two_find_each_other_without_a_tracker() {
  QCOMPARE(run_.make("pair", "100"), QByteArray());
  run_.lose_tracker();
  QCOMPARE(run_.start("a"), QByteArray());
  // Else each might begin a history of its own, and one of them would be given up (test_rounds_sim).
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QVERIFY(run_.begin_with("a"));
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
  QVERIFY(run_.together({"a", "b"}, run_.round("a") + 1));
}

void TestRoundsPair::who_finishes_completes_the_round() {
  const int newest = run_.round("b");
  const int counted = run_.rounds("b")["contributed"].toInt();
  const ProcessResult finished = run_node({"finish", "--data-dir", run_.path("b")});
  QVERIFY2(finished.ok(), finished.text().constData());
  const QJsonObject status = run_.status("b");
  QCOMPARE(status["state"].toString(), QString("idle"));
  QVERIFY2(run_.rounds("b")["round"].toInt() > newest && run_.rounds("b")["contributed"].toInt() > counted,
           QJsonDocument(status).toJson().constData());
  // It counts with the other, too, which goes on.
  const int last = run_.rounds("b")["round"].toInt();
  QTRY_VERIFY_WITH_TIMEOUT(run_.certified("a").value(last).contributors == 2, RoundsRun::patience_ms);
  QVERIFY(run_.status("a")["training"].toObject()["step"].toInt() > 0);
  for (const char* name : {"a", "b"}) {
    run_.node(name).terminate();
    const ProcessResult ended = run_.node(name).finish();
    QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
  }
}

NS_TEST(TestRoundsPair)
#include "test_rounds_pair.moc"
