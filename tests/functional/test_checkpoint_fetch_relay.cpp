// A checkpoint that a node holds which nobody can dial: it listens at an address of which the others know
// nothing, so a relay (the tracker) stands in for it. The fetching process is a guest of that network, calls
// it through the relay, and needs no place there.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestCheckpointFetchRelay : public QObject {
  Q_OBJECT

  RoundsRun net_;
  QStringList guest() const {
    return {"--json", "--profile", net_.profile(), "--lan", "--at", net_.tracker_at()};
  }
  QJsonObject view() const {
    return json_lines(run_node({"peers", "--json", "--data-dir", net_.path("hidden")}).out).value(0);
  }
  // The result of these words with `--data-dir c`.
  ProcessResult checkpoint(const QStringList& words) const {
    return run_node(QStringList{"checkpoint"} + words + QStringList{"--data-dir", net_.path("c")});
  }

 private Q_SLOTS:
  void initTestCase() {
    net_.address = "127.0.0.2";
    const QByteArray trouble = net_.make("behind", "20");
    QVERIFY2(trouble.isEmpty(), trouble.constData());
    const QByteArray begun = net_.start("hidden");
    QVERIFY2(begun.isEmpty(), begun.constData());
    const QString tracker = net_.tracker_at().section('@', 1);
    QTRY_COMPARE_WITH_TIMEOUT(view()["relay"].toString(), tracker, RoundsRun::patience_ms);
    QVERIFY(view()["advertise"].toString().isEmpty());
  }

  void it_is_found_and_fetched_through_the_relay() {
    QList<QJsonObject> offers;
    QTRY_VERIFY2_WITH_TIMEOUT(
        (offers = json_lines(checkpoint(QStringList{"fetch"} + guest()).out), !offers.isEmpty()),
        "nothing is offered", RoundsRun::patience_ms);
    const ProcessResult fetched = checkpoint(QStringList{"fetch", "newest"} + guest());
    QVERIFY2(fetched.ok(), fetched.text().constData());
    QString imported;
    int files = 0;
    for (const QJsonObject& line : json_lines(fetched.out)) {
      if (line.contains("imported")) imported = line["imported"].toString();
      if (!line.contains("fetched")) continue;
      ++files;
      QCOMPARE(line["nodes"].toInt(), 1);
      QCOMPARE(line["relayed"].toInt(), 1);
    }
    QVERIFY2(files >= 3 && !imported.isEmpty(), fetched.text().constData());
    const ProcessResult good = checkpoint({"verify", imported});
    QVERIFY2(good.ok(), good.text().constData());
  }

  // The newest one changes once a minute at most.
  void what_is_here_is_not_fetched_again() {
    ProcessResult again;
    QTRY_VERIFY_WITH_TIMEOUT((again = checkpoint(QStringList{"fetch", "newest"} + guest()), !again.ok()),
                             RoundsRun::patience_ms);
    QVERIFY2(again.err.contains("is here already"), again.text().constData());
    for (const QJsonObject& line : json_lines(again.out))
      QVERIFY2(!line.contains("fetched") || line["fetched"].toString() == "manifest.json",
               again.text().constData());
    const QDir left(net_.path("c/fetched"));
    QCOMPARE(left.entryList(QDir::Dirs | QDir::NoDotAndDotDot), QStringList());
  }

  void it_is_found_by_its_id_alone() {
    QList<QJsonObject> offers;
    QTRY_VERIFY_WITH_TIMEOUT(
        (offers = json_lines(checkpoint(QStringList{"fetch"} + guest()).out), !offers.isEmpty()),
        RoundsRun::patience_ms);
    const ProcessResult fetched =
        checkpoint(QStringList{"fetch", offers.first()["id"].toString(), "--slot", "layer 0"} + guest());
    QVERIFY2(fetched.ok(), fetched.text().constData());
  }

  void without_the_relay_it_says_what_is_missing() {
    net_.lose_tracker();
    const ProcessResult nobody = checkpoint(QStringList{"fetch"} + guest());
    QVERIFY(!nobody.ok());
    QVERIFY2(nobody.err.contains("can't be reached"), nobody.text().constData());
  }
};

NS_TEST(TestCheckpointFetchRelay)
#include "test_checkpoint_fetch_relay.moc"
