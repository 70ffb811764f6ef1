// "plan --what-if" about the network of a real node.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsWhatIf : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    run_.grows = true;
    QCOMPARE(run_.make("what-if", "4"), QByteArray());
    QCOMPARE(run_.start("a"), QByteArray());
    QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(run_.rounds("a")["memory"].toObject()["own_bytes"].toDouble() > 0,
                             RoundsRun::patience_ms);
  }

  void another_amount_of_memory_is_counted() {
    const ProcessResult result = ask("memory=8GiB", {"--json"});
    QVERIFY2(result.ok(), result.text().constData());
    const QJsonObject answer = json_lines(result.out).value(0);
    QVERIFY(answer["counts"].toBool() && !answer["leaves"].toBool());
    const QJsonObject now = answer["now"].toObject()["memory"].toObject();
    const QJsonObject then = answer["then"].toObject()["memory"].toObject();
    QCOMPARE(now["own_bytes"], run_.rounds("a")["memory"].toObject()["own_bytes"]);
    QCOMPARE(then["own_bytes"].toDouble(), 8.5e9);
    QCOMPARE(then["offered_bytes"].toDouble(), 8.5e9);
    QVERIFY(answer["part"].isNull() && answer["votes"].isNull());
    const ProcessResult text = ask("memory=8GiB");
    QVERIFY2(text.out.contains("If this node offered 8.5 GB (now ") && text.out.contains("keeps its size"),
             text.text().constData());
    QCOMPARE(run_.rounds("a")["memory"].toObject()["own_bytes"], now["own_bytes"]);
  }

  void leaving_would_end_the_network() {
    const ProcessResult result = ask("leave");
    QVERIFY2(result.ok(), result.text().constData());
    for (const char* said : {"left:", "-> 0 GB by 0 members", "nobody else has a vote"})
      QVERIFY2(result.out.contains(said), result.text().constData());
    QVERIFY(run_.rounds("a")["member"].toBool());
  }

  void what_nobody_can_offer_is_refused() {
    const auto refused = [this](const char* change, const char* why) {
      const ProcessResult result = ask(change);
      return !result.ok() && result.out.isEmpty() && result.err.contains(why);
    };
    QVERIFY(refused("memory=100MB", "500 MB or more"));
    QVERIFY(refused("memory=500TB", "a member can offer 131072 GB at most"));
    QVERIFY(refused("memory=0", "positive number of bytes"));
    QVERIFY(refused("memory=8GiB,speed=2T", "--peers FILE"));
    QVERIFY(refused("leave=a", "--what-if leave"));
  }

 private:
  ProcessResult ask(const char* change, const QStringList& more = {}) const {
    return run_node(QStringList{"plan", "--what-if", change, "--data-dir", run_.path("a")} + more);
  }
  RoundsRun run_;
};

NS_TEST(TestRoundsWhatIf)
#include "test_rounds_what_if.moc"
