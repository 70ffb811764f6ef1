#include <QtTest>

#include "core/chain/detail/stall_marks.h"
#include "tests/support/test_main.h"

using neuroshard::chain::StallMarks;
using Numbers = std::vector<std::uint32_t>;

class TestStallMarks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void first_all_then_one_after_the_other();
  void each_has_its_turn_though_the_others_change();
};

// Planted: next() that returns all each time.
void TestStallMarks::first_all_then_one_after_the_other() {
  StallMarks marks;
  QCOMPARE(marks.next({}), Numbers{});
  const Numbers silent{0, 4, 7};
  QCOMPARE(marks.next(silent), silent);
  for (const std::uint32_t one : {0u, 4u, 7u, 0u, 4u}) QCOMPARE(marks.next(silent), Numbers{one});
  QCOMPARE(marks.next({}), Numbers{});
  QCOMPARE(marks.next(silent), Numbers{7});
  QCOMPARE(marks.next({3}), Numbers{3});
  QCOMPARE(marks.next({3}), Numbers{3});
}

// 4 is silent all the time; two others are heard in turns. Planted: next() that counts places in the list.
void TestStallMarks::each_has_its_turn_though_the_others_change() {
  StallMarks marks;
  marks.next({2, 4, 9});
  int turns = 0;
  for (int i = 0; i < 12; ++i)
    if (marks.next(i % 2 == 0 ? Numbers{2, 4} : Numbers{4, 9}) == Numbers{4}) ++turns;
  QVERIFY(turns >= 4);
}

NS_TEST(TestStallMarks)
#include "test_stall_marks.moc"
