// The distance of two words: it counts letters put in, left out and replaced, the fewest that will do.
#include <QtTest>

#include "core/base/edit_distance.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

class TestEditDistance : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void counts_the_fewest_changes_data();
  void counts_the_fewest_changes();
};

void TestEditDistance::counts_the_fewest_changes_data() {
  QTest::addColumn<QString>("from");
  QTest::addColumn<QString>("to");
  QTest::addColumn<int>("distance");
  QTest::newRow("nothing") << QString() << QString() << 0;
  QTest::newRow("all letters") << QString() << "disk" << 4;
  QTest::newRow("the same") << "disk_limit"
                            << "disk_limit" << 0;
  QTest::newRow("one more") << "disk_limits"
                            << "disk_limit" << 1;
  QTest::newRow("one less in the middle") << "dsk_limit"
                                          << "disk_limit" << 1;
  QTest::newRow("another letter") << "risk_limit"
                                  << "disk_limit" << 1;
  QTest::newRow("two letters in the wrong order") << "idsk_limit"
                                                  << "disk_limit" << 2;
  QTest::newRow("at three places") << "kitten"
                                   << "sitting" << 3;
  QTest::newRow("nothing in common") << "abc"
                                     << "xyz" << 3;
}

void TestEditDistance::counts_the_fewest_changes() {
  QFETCH(QString, from);
  QFETCH(QString, to);
  const std::string a = from.toStdString(), b = to.toStdString();
  QTEST(static_cast<int>(edit_distance(a, b)), "distance");
  QCOMPARE(edit_distance(b, a), edit_distance(a, b));
}

NS_TEST(TestEditDistance)
#include "test_edit_distance.moc"
