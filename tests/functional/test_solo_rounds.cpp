// Two real processes train a model as large as that of the profile "solo" in outer rounds.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestSoloRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_nodes_train_it_in_rounds();

 private:
  RoundsRun run_;
};

void TestSoloRounds::two_nodes_train_it_in_rounds() {
  run_.solo = true;
  QCOMPARE(run_.make("solo-rounds", "3"), QByteArray());
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
}

NS_TEST(TestSoloRounds)
#include "test_solo_rounds.moc"
