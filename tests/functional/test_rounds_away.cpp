// Three real processes, one of them on a computer that suspends: it tells the others before, they certify rounds
// without it, and it is back in the rounds after the resume. The computer is a logind of the test's own.
#include <QTimer>
#include <QtTest>

#include "tests/support/fake_logind.h"
#include "tests/support/private_bus.h"
#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsAway : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void a_suspended_node_is_not_waited_for();
  void it_is_back_after_the_resume();
  void a_stop_while_the_computer_waits_is_a_clean_stop();

 private:
  // Of the node on the suspended computer.
  bool log_has(const QString& text) const {
    QFile log(run_.path("c") + "/logs/neuroshardd.log");
    return log.open(QIODevice::ReadOnly) && QString::fromUtf8(log.readAll()).contains(text);
  }

  std::unique_ptr<PrivateBus> bus_;
  std::unique_ptr<FakeLogind> logind_;
  QTimer answers_;
  RoundsRun run_;
};

void TestRoundsAway::initTestCase() {
  if (!PrivateBus::installed()) QSKIP("dbus-daemon is not installed");
  bus_ = std::make_unique<PrivateBus>();
  QVERIFY(!bus_->address().empty());
  logind_ = std::make_unique<FakeLogind>(bus_->address(), std::chrono::seconds(20));
  QVERIFY(logind_->ready());
  connect(&answers_, &QTimer::timeout, this, [this] { logind_->process(); });
  answers_.start(20);

  QCOMPARE(run_.make("away", "60"), QByteArray());
  // Only the third node's computer has a logind.
  run_.environment = {"DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + run_.path("no-bus")};
  QCOMPARE(run_.start("a"), QByteArray());
  QCOMPARE(run_.start("b"), QByteArray());
  run_.environment = {"DBUS_SYSTEM_BUS_ADDRESS=" + QString::fromStdString(bus_->address())};
  QCOMPARE(run_.start("c"), QByteArray());
  QVERIFY(run_.together({"a", "b", "c"}));
  QTRY_COMPARE(logind_->held(), std::size_t{1});
  QCOMPARE(logind_->given().front().who, std::string("NeuroShard"));
  QVERIFY(!log_has("gives no notice"));
}

void TestRoundsAway::a_suspended_node_is_not_waited_for() {
  logind_->prepare_for_sleep(true);
  QTRY_COMPARE_WITH_TIMEOUT(logind_->held(), std::size_t{0}, 15'000);
  run_.node("c").hold();
  QVERIFY(log_has("this computer suspends"));
  // Of three members all have to vote, so each further round shows that two are enough.
  const int newest = qMax(run_.round("a"), run_.round("b"));
  QTRY_VERIFY_WITH_TIMEOUT(run_.certified("a").contains(newest + 3), 30'000);
  const QMap<int, CertifiedRound> rounds = run_.certified("a");
  for (int round = newest + 2; round <= newest + 3; ++round) {
    QCOMPARE(rounds[round].members, 2);
    QCOMPARE(rounds[round].contributors, 2);
  }
  QFile log(run_.path("a") + "/logs/neuroshardd.log");
  QVERIFY(log.open(QIODevice::ReadOnly));
  QVERIFY(!QString::fromUtf8(log.readAll()).contains("training alone"));
}

void TestRoundsAway::it_is_back_after_the_resume() {
  const int newest = run_.round("a");
  run_.node("c").go_on();
  logind_->prepare_for_sleep(false);
  QTRY_COMPARE(logind_->held(), std::size_t{1});
  QVERIFY(run_.together({"a", "b", "c"}, newest));
  QVERIFY(log_has("this computer has resumed"));
  const QJsonObject rounds = run_.rounds("c");
  QVERIFY2(rounds["trouble"].toString().isEmpty(), QJsonDocument(rounds).toJson().constData());
}

void TestRoundsAway::a_stop_while_the_computer_waits_is_a_clean_stop() {
  logind_->prepare_for_shutdown(true);
  run_.node("c").terminate();
  const ProcessResult ended = run_.node("c").finish();
  QVERIFY2(ended.ok(), ended.text().constData());
  QTRY_COMPARE(logind_->held(), std::size_t{0});
  const int newest = qMax(run_.round("a"), run_.round("b"));
  QTRY_VERIFY_WITH_TIMEOUT(run_.certified("a").value(newest + 2).members == 2, 30'000);
}

NS_TEST(TestRoundsAway)
#include "test_rounds_away.moc"
