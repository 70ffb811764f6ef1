// Three real processes train on published text, and one of them rebuilds batches of the others from the chain, the
// text and the lists that they sign. How many: NS_AUDIT_BATCHES (default 50).
#include <QElapsedTimer>
#include <QRegularExpression>
#include <QTest>

#include "tests/support/published_rounds.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestAuditBatches : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void three_train_on_published_text();
  void batches_of_other_nodes_are_rebuilt_bit_for_bit();
  void a_killed_node_lists_the_work_that_it_kept();
  void lists_that_no_node_keeps_are_not_waited_for();
  void the_contribution_is_named_by_member_and_round();
  void a_tampered_list_is_refused();

 private:
  ProcessResult audit(const QStringList& words) {
    return run_node(QStringList{"audit", "batch", "--json", "--lan", "--data-dir", run().path("a")} + words,
                    300'000);
  }
  RoundsRun& run() { return network_.run; }

  PublishedRounds network_;
  const int batches_ = qEnvironmentVariableIntValue("NS_AUDIT_BATCHES") > 0
                           ? qEnvironmentVariableIntValue("NS_AUDIT_BATCHES")
                           : 50;
};

void TestAuditBatches::initTestCase() {
  for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
  QCOMPARE(network_.make("audit", "40", 400'000, 8000), QByteArray());
}

void TestAuditBatches::three_train_on_published_text() {
  QCOMPARE(run().start("a", ""), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run().round("a") >= 1, RoundsRun::patience_ms);
  for (const char* name : {"b", "c"}) run().launch(name, "");
  for (const char* name : {"b", "c"}) QCOMPARE(run().joined(name), QByteArray());
  QVERIFY(run().together({"a", "b", "c"}));
  // Each round of each other node has 40 batches, more or less.
  const int rounds = 2 + batches_ / 60;
  QVERIFY(run().together({"a", "b", "c"}, run().round("a") + rounds));
}

void TestAuditBatches::batches_of_other_nodes_are_rebuilt_bit_for_bit() {
  const ProcessResult audited = audit({"--random", QString::number(batches_)});
  QVERIFY2(audited.ok(), audited.text().constData());
  const QList<QJsonObject> lines = json_lines(audited.out);
  const QString own = run().status("a")["node_id"].toString();
  QSet<QString> nodes, batches;
  for (const QJsonObject& line : lines.mid(0, lines.size() - 1)) {
    if (line["result"].toString() == "no_list") continue;  // rounds go on: the oldest lists may go meanwhile
    QVERIFY2(line["result"].toString() == "same", QJsonDocument(line).toJson().constData());
    nodes.insert(line["node"].toString());
    batches.insert(QString("%1 %2 %3")
                       .arg(line["node"].toString())
                       .arg(line["round"].toInt())
                       .arg(line["batch"].toInt()));
  }
  QCOMPARE(lines.last()["same"].toInt(), batches_);
  QCOMPARE(batches.size(), batches_);
  QCOMPARE(nodes.size(), 2);
  QVERIFY(own.size() == 64 && !nodes.contains(own));
}

// It goes on from its last checkpoint, whose position has the runs up to there.
void TestAuditBatches::a_killed_node_lists_the_work_that_it_kept() {
  if (!qEnvironmentVariableIsSet("NS_LONG")) QSKIP("runs in tests/long.sh audit-batches only");
  for (int kill = 0; kill < 3; ++kill) {
    run().node("b").kill_now();
    run().launch("b", "");
    QCOMPARE(run().joined("b"), QByteArray());
    QVERIFY(run().together({"a", "b", "c"}, run().round("a") + 1));
  }
  const QString b = run().status("b")["node_id"].toString();
  const ProcessResult audited = audit({"--node", b, "--random", "300"});
  QVERIFY2(audited.ok(), audited.text().constData());
  QVERIFY2(json_lines(audited.out).last()["same"].toInt() >= 100, audited.out.constData());
}

// Nodes keep the lists of 64 rounds. A choice among all batches of a longer chain ends all the same.
void TestAuditBatches::lists_that_no_node_keeps_are_not_waited_for() {
  if (!qEnvironmentVariableIsSet("NS_LONG")) QSKIP("runs in tests/long.sh audit-batches only");
  QTRY_VERIFY_WITH_TIMEOUT(run().round("a") >= 80, 600'000);
  QElapsedTimer time;
  time.start();
  const ProcessResult audited = audit({"--random", "100000"});
  QVERIFY2(audited.ok(), audited.text().constData());
  const QJsonObject counts = json_lines(audited.out).last();
  qInfo("MEASURED batches %d, lists missing %d, %lld s", counts["batches"].toInt(),
        counts["lists_missing"].toInt(), time.elapsed() / 1000);
  QVERIFY2(counts["same"].toInt() >= 1000, audited.out.right(500).constData());
  QVERIFY2(counts["lists_missing"].toInt() < 20, audited.out.right(500).constData());
}

void TestAuditBatches::the_contribution_is_named_by_member_and_round() {
  const QString b = run().status("b")["node_id"].toString();
  const int round = run().round("a") - 1;
  const ProcessResult all = audit({"--node", b.left(12), "--round", QString::number(round)});
  QVERIFY2(all.ok(), all.text().constData());
  const QList<QJsonObject> lines = json_lines(all.out);
  QVERIFY2(lines.last()["same"].toInt() >= 2, all.out.constData());
  const ProcessResult one = audit({"--node", lines.first()["member"].toVariant().toString(), "--round",
                                   QString::number(round), "--batch", "1"});
  QVERIFY2(one.ok(), one.text().constData());
  QCOMPARE(json_lines(one.out).last()["same"].toInt(), 1);
  QVERIFY(!audit({"--node", b, "--round", "1000000"}).ok());
  QVERIFY(!audit({"--node", b}).ok());
}

// A list with a changed byte is not the contribution's. One that was damaged on the disk here is fetched again.
void TestAuditBatches::a_tampered_list_is_refused() {
  const QString folder = run().path("a") + "/audit";
  const QStringList kept = QDir(folder).entryList(QDir::Files).filter(QRegularExpression("^[0-9a-f]{64}$"));
  QVERIFY(!kept.isEmpty());
  QFile file(folder + "/" + kept.first());
  QVERIFY(file.open(QIODevice::ReadWrite));
  QByteArray bytes = file.readAll();
  bytes[bytes.size() - 70] = static_cast<char>(bytes[bytes.size() - 70] ^ 1);
  QVERIFY(file.seek(0) && file.write(bytes) == bytes.size());
  file.close();
  QFile tampered(run().path("tampered"));
  QVERIFY(tampered.open(QIODevice::WriteOnly) && tampered.write(bytes) == bytes.size());
  tampered.close();
  QVERIFY(audit({"--random", "40"}).ok());
  const ProcessResult audited = audit({"--random", "100000", "--list", run().path("tampered")});
  QCOMPARE(audited.exit_code, 1);
  QCOMPARE(json_lines(audited.out).last()["wrong"].toInt(), 1);
  for (const char* name : {"a", "b", "c"}) {
    run().node(name).terminate();
    const ProcessResult ended = run().node(name).finish();
    QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
  }
}

NS_TEST(TestAuditBatches)
#include "test_audit_batches.moc"
