// Changed messages over real connections to a real node in rounds with another, for some seconds; the long check
// protocol-fuzz does the same for an hour under sanitizers.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int seconds = 3;
constexpr int least_calls = 100;  // a busy machine; a quiet one makes thousands

}  // namespace

class TestProtocolFuzzer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_outlives_changed_messages();
};

void TestProtocolFuzzer::a_node_outlives_changed_messages() {
  RoundsRun run;
  QCOMPARE(run.make("fuzzed", "50"), QByteArray());
  QCOMPARE(run.start("a"), QByteArray());
  run.launch("recorder", "text", {"record", run.path("said")});
  QCOMPARE(run.joined("recorder"), QByteArray());
  QVERIFY(run.together({"a", "recorder"}));
  const QString id = run.status("a")["node_id"].toString();
  QVERIFY(run.begin_with("a"));
  NodeProcess fuzzer(
      {"fuzz", "--profile", run.profile(), "--at", id + "@" + run.tracker_at(), "--seconds",
       QString::number(seconds), "--record", run.path("said"), "--key", run.path("recorder") + "/node.key"},
      {}, {}, {}, program_named("protocol_fuzzer"));
  const ProcessResult result = fuzzer.finish();
  QVERIFY2(result.exit_code == 0, result.text().constData());
  const QJsonObject said = json_lines(result.out).value(0);
  qInfo() << said["calls"].toInt() << "calls," << said["answers"].toInt() << "answers,"
          << said["identities"].toInt() << "identities";
  QVERIFY2(said["calls"].toInt() >= least_calls, result.out.constData());
  QVERIFY(said["kinds"].toObject().size() >= 30);
  QVERIFY(said["member"].toInt() >= 0);  // it signs as the member that it has recorded
  QVERIFY(said["honest_calls"].toInt() > 0);
  QCOMPARE(said["honest_failed"].toInt(), 0);
  QVERIFY(run.node("a").running());
  QVERIFY(run.node("recorder").running());
  // The rounds go on, and what one said in the other's name did not part them. Strangers are candidates now.
  const int round = run.round("a");
  for (const QDeadlineTimer deadline(RoundsRun::patience_ms); run.round("recorder") < round + 1;) {
    QVERIFY(!deadline.hasExpired());
    QTest::qWait(100);
  }
  const auto at_a = run.certified("a"), at_recorder = run.certified("recorder");
  QVERIFY(at_a.contains(round) && at_recorder.contains(round));
  for (auto it = at_a.begin(); it != at_a.end(); ++it)
    if (at_recorder.contains(it.key())) QCOMPARE(at_recorder.value(it.key()).anchor, it->anchor);
}

NS_TEST(TestProtocolFuzzer)
#include "test_protocol_fuzzer.moc"
