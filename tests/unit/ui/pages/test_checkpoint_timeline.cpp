// The timeline of checkpoints selects what the table selects, with the mouse and with the keys.
#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/checkpoints_fixture.h"
#include "ui/pages/checkpoint_timeline.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestCheckpointTimeline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<CheckpointsFixture>(); }
  void cleanup() { fixture_.reset(); }
  void the_timeline_and_the_table_are_one();
  void steps_begin_where_the_language_does();

 private:
  std::unique_ptr<CheckpointsFixture> fixture_;
};

void TestCheckpointTimeline::the_timeline_and_the_table_are_one() {
  fixture_->start_three();
  auto* timeline = fixture_->page->findChild<CheckpointTimeline*>();
  QTest::mouseClick(timeline, Qt::LeftButton, {}, timeline->position_of(QStringLiteral("c2")).toPoint());
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().size(), 1);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 1);
  timeline->setFocus();
  QTest::keyClick(timeline, Qt::Key_Right);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 0);
  QTest::keyClick(timeline, Qt::Key_Home);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 2);
  QVERIFY(timeline->accessibleDescription().contains(QStringLiteral("Step 100")));
  QTest::keyClick(timeline, Qt::Key_Return);
  QVERIFY(fixture_->question() != nullptr);  // as Restore
}

// From right to left the first step stands at the right, and keys go where they point.
void TestCheckpointTimeline::steps_begin_where_the_language_does() {
  fixture_->start_three();
  auto* timeline = fixture_->page->findChild<CheckpointTimeline*>();
  const auto x = [&](const char* name) { return timeline->position_of(QString::fromLatin1(name)).x(); };
  const double first = x("c1"), second = x("c2"), last = x("c3");
  QVERIFY(first < second && second < last);
  timeline->setLayoutDirection(Qt::RightToLeft);
  QCOMPARE(x("c1"), timeline->width() - first);
  QCOMPARE(x("c2"), timeline->width() - second);
  QCOMPARE(x("c3"), timeline->width() - last);
  // The line to the newest mark is drawn there too, and nothing beyond the first.
  const QImage image = timeline->grab().toImage();
  const auto ground = image.pixelColor(1, 1);
  const int y = static_cast<int>(timeline->position_of(QStringLiteral("c2")).y());
  const auto drawn = [&](double at) { return image.pixelColor(static_cast<int>(at), y) != ground; };
  QVERIFY(drawn((x("c1") + x("c2")) / 2) && drawn((x("c2") + x("c3")) / 2));
  QVERIFY(!drawn(x("c1") + 14));
  QTest::mouseClick(timeline, Qt::LeftButton, {}, timeline->position_of(QStringLiteral("c2")).toPoint());
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 1);
  timeline->setFocus();
  QTest::keyClick(timeline, Qt::Key_Left);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 0);
  QTest::keyClick(timeline, Qt::Key_Right);
  QTest::keyClick(timeline, Qt::Key_Right);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 2);
}

NS_UI_TEST(TestCheckpointTimeline)
#include "test_checkpoint_timeline.moc"
