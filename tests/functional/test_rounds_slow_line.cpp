// Real processes, one of which may send 64 KiB a second: a round's work needs longer than its training, and
// the node says so with both figures. Without the limit it does not. A limit that is set while the node runs takes
// effect at once.
#include <QJsonArray>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsSlowLine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_limit_that_the_rounds_exceed_is_told();
  void and_no_more_once_it_is_lifted();
  void limits_that_are_set_while_it_runs_are_in_force_at_once();

 private:
  QString alert(const QString& name) const {
    for (const QJsonValue& one : run_.status(name)["alerts"].toArray())
      if (one["key"].toString() == "rounds_line") return one["message"].toString();
    return {};
  }
  bool trains_as_one_of_two(const QString& name) const {
    const QJsonObject status = run_.status(name);
    return status["rounds"].toObject()["members"].toInt() == 2 &&
           status["rounds"].toObject()["member"].toBool() &&
           status["training"].toObject()["step"].toInt() > 0;
  }
  RoundsRun run_;
};

void TestRoundsSlowLine::a_limit_that_the_rounds_exceed_is_told() {
  run_.hidden = "64";
  run_.founder = "a";
  QCOMPARE(run_.make("slow-line", "40"), QByteArray());
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  run_.node_words = QStringList{"--upload-limit", "64KiB"};
  QCOMPARE(run_.start("b"), QByteArray());
  QString told;
  const auto alerted = [&] { return !(told = alert("b")).isEmpty(); };
  QVERIFY(neuroshard::testing::seen_once(alerted, RoundsRun::patience_ms));
  qInfo().noquote() << told;
  const QRegularExpressionMatch figures =
      QRegularExpression(
          "up to ([0-9.]+) MB each way, about ([0-9.]+) s over this node's line of 0\\.5 Mbit/s, but "
          "training a round takes only ([0-9.]+) s:")
          .match(told);
  QVERIFY2(figures.hasMatch(), qPrintable(told));
  const double megabytes = figures.captured(1).toDouble(), sending = figures.captured(2).toDouble(),
               training = figures.captured(3).toDouble();
  QVERIFY2(megabytes > 0 && sending > training, qPrintable(told));
  QVERIFY2(qAbs(sending - megabytes * 1e6 / 65'536) < 1 + 0.1 * sending, qPrintable(told));
  QVERIFY(trains_as_one_of_two("a"));
  QCOMPARE(alert("a"), QString());  // which may send as fast as it can
}

void TestRoundsSlowLine::and_no_more_once_it_is_lifted() {
  run_.node("b").terminate();
  const ProcessResult ended = run_.node("b").finish();
  QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
  run_.node_words.clear();
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(
      neuroshard::testing::seen_once([this] { return trains_as_one_of_two("b"); }, RoundsRun::patience_ms));
  const int round = run_.round("b");  // what is said is looked at anew meanwhile
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("b") > round, RoundsRun::patience_ms);
  QCOMPARE(alert("b"), QString());
}

void TestRoundsSlowLine::limits_that_are_set_while_it_runs_are_in_force_at_once() {
  constexpr int soon_ms = 20'000;
  const auto set = [this](const QString& name, const QString& value) {
    const ProcessResult done = run_node({"settings", "set", name, value, "--data-dir", run_.path("b")});
    if (!done.ok()) qWarning() << done.text();
    return done.ok() && !(done.out + done.err).contains("next start");
  };
  const auto used_up = [this] {
    QFile log(run_.path("b") + "/logs/neuroshardd.log");
    return log.open(QIODevice::ReadOnly) ? log.readAll().count("this month's data is used up") : -1;
  };
  QVERIFY(set("upload_limit", "64KiB"));
  const auto alerted = [this] { return !alert("b").isEmpty(); };
  QVERIFY(neuroshard::testing::seen_once(alerted, soon_ms));
  QVERIFY(set("upload_limit", "0"));
  QVERIFY(neuroshard::testing::seen_once([&] { return !alerted(); }, soon_ms));

  QCOMPARE(used_up(), 0);
  QVERIFY(set("monthly_data", "1"));
  QTRY_VERIFY_WITH_TIMEOUT(used_up() > 0, soon_ms);
  QVERIFY(set("monthly_data", "0"));
  const int round = run_.round("b");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("b") > round + 1, RoundsRun::patience_ms);
  run_.kill_all();
}

NS_TEST(TestRoundsSlowLine)
#include "test_rounds_slow_line.moc"
