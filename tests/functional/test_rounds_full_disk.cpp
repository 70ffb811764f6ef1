// The disk of one of three real nodes gets full in the middle of rounds, without a warning by its limits. That node
// pauses with the reason, the others go on, and with room again it takes part as before: nothing is torn.
#include <QJsonDocument>
#include <QTest>
#include <optional>

#include "tests/support/rounds_run.h"
#include "tests/support/small_disk.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsFullDisk : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void the_node_pauses_and_the_others_go_on();
  void with_room_again_it_takes_part();

 private:
  static constexpr qint64 roomy = qint64{64} << 30;
  QByteArray status() const { return QJsonDocument(run_.status("crowded")).toJson(QJsonDocument::Compact); }

  RoundsRun run_;
  std::optional<SmallDisk> disk_;
};

void TestRoundsFullDisk::initTestCase() {
  run_.hidden = "64";
  run_.founder = "free";
  QCOMPARE(run_.make("disk", "2", {"--block-time-s", "1", "--stall-after-s", "10"}), QByteArray());
  disk_.emplace(run_.path("crowded"), 1);
  if (!disk_->mounted()) QSKIP(disk_->problem().constData());
  QVERIFY(disk_->resize(roomy));
  QCOMPARE(run_.start("free"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("free") >= 1, RoundsRun::patience_ms);
  for (const char* name : {"other", "crowded"}) QCOMPARE(run_.start(name), QByteArray());
  QVERIFY(run_.together({"free", "other", "crowded"}));
}

void TestRoundsFullDisk::the_node_pauses_and_the_others_go_on() {
  QVERIFY(disk_->fill());
  const auto told = [&] { return status().contains("disk"); };
  QVERIFY2(neuroshard::testing::seen_once(told, RoundsRun::patience_ms), status().constData());
  qInfo().noquote() << status();
  QVERIFY(run_.together({"free", "other"}, run_.round("free") + 2));
  QVERIFY(run_.node("crowded").running());
}

void TestRoundsFullDisk::with_room_again_it_takes_part() {
  QVERIFY(disk_->resize(roomy));
  QVERIFY(run_.together({"free", "other", "crowded"}, run_.round("free")));
  const auto theirs = run_.certified("crowded"), ours = run_.certified("free");
  int compared = 0;
  for (auto it = theirs.begin(); it != theirs.end(); ++it) {
    if (!ours.contains(it.key())) continue;
    QCOMPARE(it->anchor, ours.value(it.key()).anchor);
    ++compared;
  }
  QVERIFY(compared > 0);
  QCOMPARE(run_.rounds("crowded")["corruptions"].toInt(), 0);
  run_.node("crowded").terminate();
  const ProcessResult ended = run_.node("crowded").finish();
  QVERIFY2(ended.ok(), ended.text().constData());
}

NS_TEST(TestRoundsFullDisk)
#include "test_rounds_full_disk.moc"
