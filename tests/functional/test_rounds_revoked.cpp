// Three real processes: a stranger's node, and two of one wallet, a laptop and a desktop. The laptop is stolen and runs
// on. Its owner revokes its key at the desktop: it stops counting within a round, the others go on, and a new key
// works for the wallet.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/wallet_run.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsRevoked : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void three_train_together();
  void the_wallet_lists_its_nodes();
  void nobody_else_can_revoke();
  void the_wallet_revokes_the_laptop();
  void the_others_go_on_without_it();
  void its_key_never_comes_back();
  void a_new_key_works_for_the_wallet();

 private:
  ProcessResult revoke(const QString& at, const QStringList& words) const {
    return wallet(QStringList{"revoke"} + words, run_.path(at));
  }
  QJsonObject chain(const QStringList& words) const {
    const QStringList all = QStringList{"chain", "show"} + words;
    return json_lines(run_node(all + QStringList{"--json", "--data-dir", run_.path("a")}).out).value(0);
  }
  QJsonObject nodes(const QString& at) const {
    return json_lines(wallet({"nodes", "--json"}, run_.path(at)).out).value(0);
  }
  QString standing(const QString& name) const {
    return run_.rounds(name)["chain"].toObject()["standing"].toString();
  }
  void restore(const QString& name) const {
    const QStringList words{"restore", "--from", "-", "--passphrase-file", passphrase_};
    const ProcessResult made = wallet(words, run_.path(name), fixed_words);
    QVERIFY2(made.ok(), made.text().constData());
  }
  void end(const QString& name) {
    run_.node(name).terminate();
    const ProcessResult ended = run_.node(name).finish();
    QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
  }

  RoundsRun run_;
  QString passphrase_, laptop_;              // a file; a node id
  int laptop_number_ = -1, revoked_in_ = 0;  // its number as a member; a block
};

void TestRoundsRevoked::initTestCase() {
  QCOMPARE(
      run_.make("revoked", "40", {"--voters", "invited", "--block-time-s", "5", "--stall-after-s", "120"}),
      QByteArray());
  passphrase_ = run_.path("passphrase");
  QVERIFY(run_.write_text("passphrase", "four common words here\n"));
  for (const char* name : {"laptop", "desktop"}) restore(name);
  run_.environment = {"NEUROSHARD_PASSPHRASE_FILE=" + passphrase_};  // for their delegations
}

void TestRoundsRevoked::three_train_together() {
  for (const char* name : {"a", "laptop", "desktop"}) run_.launch(name);
  for (const char* name : {"a", "laptop", "desktop"}) QCOMPARE(run_.joined(name), QByteArray());
  for (const char* name : {"a", "laptop", "desktop"})
    QTRY_COMPARE_WITH_TIMEOUT(standing(name), QString("voter"), RoundsRun::patience_ms);
  QTRY_VERIFY_WITH_TIMEOUT(run_.rounds("laptop")["contributed"].toInt() >= 3, RoundsRun::patience_ms);
  laptop_ = run_.status("laptop")["node_id"].toString();
  QCOMPARE(laptop_.size(), 64);
  for (const QJsonValue& member : chain({})["members"].toArray())
    if (member.toObject()["id"].toString() == laptop_) laptop_number_ = member.toObject()["number"].toInt();
  QVERIFY(laptop_number_ >= 0);
}

// So its owner finds the id of the computer that is gone.
void TestRoundsRevoked::the_wallet_lists_its_nodes() {
  const QString desktop = run_.status("desktop")["node_id"].toString();
  const QJsonObject own = nodes("desktop");
  QSet<QString> ids;
  for (const QJsonValue& node : own["nodes"].toArray()) {
    ids.insert(node["id"].toString());
    QCOMPARE(node["standing"].toString(), QString("voter"));
    QVERIFY(node["contributions"].toInt() >= 1 && node["last_round"].toInt() >= 1);
  }
  QCOMPARE(ids, (QSet<QString>{laptop_, desktop}));
  QVERIFY(own["revoked"].toArray().isEmpty());
  QCOMPARE(own["protection"].toString(), QString("passphrase"));
  const QJsonArray others = nodes("a")["nodes"].toArray();
  QCOMPARE(others.size(), 1);
  QCOMPARE(others[0]["id"].toString(), run_.status("a")["node_id"].toString());
  const ProcessResult shown = wallet({"nodes"}, run_.path("desktop"));
  QVERIFY2(shown.out.contains("voter      " + laptop_.toUtf8()), shown.text().constData());
}

void TestRoundsRevoked::nobody_else_can_revoke() {
  const ProcessResult stranger = revoke("a", {laptop_, "--yes"});
  QVERIFY2(!stranger.ok() && stranger.err.contains("works for another wallet"), stranger.text().constData());
  const ProcessResult unknown = revoke("desktop", {QString(64, '0'), "--yes"});
  QVERIFY2(!unknown.ok() && unknown.err.contains("no member's id begins with"), unknown.text().constData());
  const ProcessResult unasked = revoke("desktop", {laptop_, "--passphrase-file", passphrase_});
  QVERIFY2(!unasked.ok() && unasked.err.contains("add --yes"), unasked.text().constData());
  const ProcessResult locked = revoke("desktop", {laptop_, "--yes"});
  QVERIFY2(!locked.ok() && locked.err.contains("passphrase"), locked.text().constData());
  QCOMPARE(standing("laptop"), QString("voter"));
}

void TestRoundsRevoked::the_wallet_revokes_the_laptop() {
  const ProcessResult done =
      revoke("desktop", {laptop_.left(12), "--yes", "--json", "--passphrase-file", passphrase_});
  QVERIFY2(done.ok(), done.text().constData());
  const QJsonObject said = json_lines(done.out).value(0);
  QCOMPARE(said["node_id"].toString(), laptop_);
  revoked_in_ = said["block"].toInt();
  QVERIFY2(revoked_in_ > 1, done.text().constData());
  // A second time it says the same block, and asks for nothing.
  const ProcessResult again = revoke("desktop", {laptop_.left(12), "--json"});
  QVERIFY2(again.ok(), again.text().constData());
  QCOMPARE(json_lines(again.out).value(0)["block"], said["block"]);
  QTRY_COMPARE_WITH_TIMEOUT(standing("laptop"), QString("revoked"), RoundsRun::patience_ms);
  const QJsonObject own = nodes("desktop");
  QCOMPARE(own["nodes"].toArray().size(), 1);
  QCOMPARE(own["revoked"][0]["id"].toString(), laptop_);
  QCOMPARE(own["revoked"][0]["block"].toInt(), revoked_in_);
  const QString trouble = run_.rounds("laptop")["trouble"].toString();
  QVERIFY2(trouble.contains("wallet has revoked its key"), qPrintable(trouble));
}

void TestRoundsRevoked::the_others_go_on_without_it() {
  const int since = run_.round("a");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= since + 3, RoundsRun::patience_ms);
  const int tip = chain({}).value("height").toInt();
  const auto has_laptop = [this](const QJsonValue& numbers) {
    return numbers.toArray().contains(QJsonValue(laptop_number_));
  };
  int closes = 0, results = 0;
  for (int height = revoked_in_ - 8; height <= std::min(tip, revoked_in_ + 12); ++height) {
    const QJsonObject block = chain({QString::number(height)}), close = block["close"].toObject();
    QCOMPARE(block["height"].toInt(), height);
    bool contributes = false;
    for (const QJsonValue& one : close["contributions"].toArray())
      contributes = contributes || one.toObject()["member"].toInt() == laptop_number_;
    if (height <= revoked_in_) {
      closes += contributes;
      continue;
    }
    QVERIFY2(!has_laptop(block["signers"]) && !has_laptop(close["vectors_of"]) && !contributes,
             QJsonDocument(block).toJson().constData());
    results += block["kind"].toString() == "result";
  }
  qInfo(
      "block %d: %d of the closes in the eight blocks before it count the laptop; %d results after it, none "
      "does",
      revoked_in_, closes, results);
  QVERIFY(results > 0);
}

void TestRoundsRevoked::its_key_never_comes_back() {
  end("laptop");
  run_.launch("laptop");
  QCOMPARE(run_.joined("laptop"), QByteArray());
  QTRY_COMPARE_WITH_TIMEOUT(standing("laptop"), QString("revoked"), RoundsRun::patience_ms);
  const int since = run_.round("a");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= since + 3, RoundsRun::patience_ms);
  QCOMPARE(standing("laptop"), QString("revoked"));
  QCOMPARE(run_.rounds("a")["members"].toInt(), 2);
}

void TestRoundsRevoked::a_new_key_works_for_the_wallet() {
  end("laptop");
  restore("fresh");
  QCOMPARE(run_.start("fresh"), QByteArray());
  QVERIFY(run_.status("fresh")["node_id"].toString() != laptop_);
  QTRY_COMPARE_WITH_TIMEOUT(standing("fresh"), QString("voter"), RoundsRun::patience_ms);
}

NS_TEST(TestRoundsRevoked)
#include "test_rounds_revoked.moc"
