// Real processes whose network has a chain: its blocks are shown, checked and exported from the disk while a node
// runs and after it; and a node goes on without another that is gone for good, once its person says so.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestChainCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void a_chain_that_may_not_be_read_is_no_missing_one();
  void two_begin_together();
  void a_running_node_s_chain_is_shown_checked_and_exported();
  void going_on_is_refused_while_the_other_answers();
  void one_goes_on_without_the_other();
  void a_stopped_node_s_chain_is_checked_too();
  void a_flipped_byte_is_found();

 private:
  ProcessResult chain(const QStringList& words) const {
    return run_node(QStringList{"chain"} + words + QStringList{"--json", "--data-dir", run_.path("a")});
  }
  QJsonObject seen(const QString& name) const { return run_.rounds(name)["chain"].toObject(); }

  RoundsRun run_;
  QString gone_;  // id of b
};

void TestChainCommand::initTestCase() {
  QCOMPARE(run_.make("chain-command", "40",
                     {"--voters", "invited", "--block-time-s", "5", "--stall-after-s", "120",
                      "--admission-contributions", "2"}),
           QByteArray());
}

// A link to itself can't be opened by root either.
void TestChainCommand::a_chain_that_may_not_be_read_is_no_missing_one() {
  QVERIFY(QDir().mkpath(run_.path("closed")));
  QVERIFY(QFile::link("profile.json", run_.path("closed") + "/profile.json"));
  const ProcessResult shown = run_node({"chain", "show", "--data-dir", run_.path("closed")});
  QCOMPARE(shown.exit_code, 77);
  QVERIFY2(shown.err.contains("closed/profile.json"), shown.text().constData());
}

void TestChainCommand::two_begin_together() {
  const ProcessResult none = chain({"show"});
  QVERIFY2(none.exit_code != 0 && none.err.contains("has no chain"), none.text().constData());
  for (const char* name : {"a", "b"}) run_.launch(name);
  for (const char* name : {"a", "b"}) QCOMPARE(run_.joined(name), QByteArray());
  QVERIFY(run_.together({"a", "b"}, 1));
  gone_ = run_.status("b")["node_id"].toString();
  QVERIFY2(gone_.size() == 64, QJsonDocument(run_.status("b")).toJson().constData());
  const QJsonObject view = seen("a");
  QCOMPARE(view["standing"].toString(), QString("voter"));
  QCOMPARE(view["committee"].toInt(), 2);
  QCOMPARE(view["outlook"].toString(), QString("certifies"));
}

void TestChainCommand::a_running_node_s_chain_is_shown_checked_and_exported() {
  const ProcessResult tip = chain({"show"});
  QVERIFY2(tip.ok(), tip.text().constData());
  const QJsonObject shown = json_lines(tip.out).value(0);
  QCOMPARE(shown["genesis"].toString(), seen("a")["genesis"].toString());
  QCOMPARE(shown["members"].toArray().size(), 2);
  const ProcessResult first = chain({"show", "0"});
  QVERIFY2(first.ok(), first.text().constData());
  QCOMPARE(json_lines(first.out).value(0)["kind"].toString(), QString("genesis"));
  QVERIFY(!chain({"show", "1000000"}).ok());
  const ProcessResult checked = chain({"verify"});
  QVERIFY2(checked.ok(), checked.text().constData());
  QVERIFY(json_lines(checked.out).value(0)["blocks"].toInt() >= 3);
  const ProcessResult written = chain({"export", run_.path("blocks.jsonl")});
  QVERIFY2(written.ok(), written.text().constData());
  QFile file(run_.path("blocks.jsonl"));
  QVERIFY(file.open(QIODevice::ReadOnly));
  const QList<QJsonObject> blocks = json_lines(file.readAll());
  QCOMPARE(blocks.size(), json_lines(written.out).value(0)["blocks"].toInt());
  for (int i = 0; i < blocks.size(); ++i) QCOMPARE(blocks[i]["height"].toInt(), i);
  QVERIFY(!chain({"export", run_.path("blocks.jsonl")}).ok());  // it exists already
}

void TestChainCommand::going_on_is_refused_while_the_other_answers() {
  const QStringList words{"network", "continue", "--yes", "--without", gone_, "--data-dir", run_.path("a")};
  const ProcessResult refused = run_node(words);
  QVERIFY2(!refused.ok(), refused.text().constData());
  const ProcessResult unnamed = run_node({"network", "continue", "--yes", "--data-dir", run_.path("a")});
  QVERIFY2(!unnamed.ok() && unnamed.err.contains("--without"), unnamed.text().constData());
}

void TestChainCommand::one_goes_on_without_the_other() {
  run_.node("b").kill_now();
  const auto needs_person = [this] { return seen("a")["outlook"].toString() == "needs_a_person"; };
  QVERIFY(neuroshard::testing::seen_once(needs_person, RoundsRun::patience_ms));
  const int before = run_.round("a");
  QTest::qWait(3000);
  QVERIFY(run_.round("a") <= before + 1);  // a round that was closed may still end
  const QStringList words{"network", "continue",   "--without",   gone_.left(12),
                          "--json",  "--data-dir", run_.path("a")};
  const ProcessResult unasked = run_node(words);  // no terminal, no --yes
  QVERIFY2(!unasked.ok() && unasked.err.contains("--yes"), unasked.text().constData());
  const ProcessResult said = run_node(words + QStringList{"--yes"});
  QVERIFY2(said.ok(), said.text().constData());
  QCOMPARE(json_lines(said.out).value(0)["without"].toArray().at(0).toString(), gone_);
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= before + 3, RoundsRun::patience_ms);
  QCOMPARE(seen("a")["committee"].toInt(), 1);
}

void TestChainCommand::a_stopped_node_s_chain_is_checked_too() {
  run_.node("a").terminate();
  const ProcessResult ended = run_.node("a").finish();
  QVERIFY2(ended.ok(), ended.text().constData());
  const ProcessResult checked = chain({"verify"});
  QVERIFY2(checked.ok(), checked.text().constData());
  QVERIFY(json_lines(checked.out).value(0)["ok"].toBool());
}

void TestChainCommand::a_flipped_byte_is_found() {
  QFile file(run_.path("a") + "/chain/blocks");
  QVERIFY(file.open(QIODevice::ReadWrite));
  QByteArray bytes = file.readAll();
  const int at = bytes.size() / 2;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  QVERIFY(file.seek(0) && file.write(bytes) == bytes.size());
  file.close();
  const ProcessResult checked = chain({"verify"});
  QCOMPARE(checked.exit_code, 1);
  const QJsonObject said = json_lines(checked.out).value(0);
  QVERIFY(!said["ok"].toBool());
  QVERIFY(said["height"].toInt() > 0);
}

NS_TEST(TestChainCommand)
#include "test_chain_command.moc"
