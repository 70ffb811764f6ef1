// Two real processes that train together know of each other's training from signed reports: how many they
// are, the loss of both, whether they hold the same weights, and who contributed to which round.
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int patience_ms = 100'000;  // a busy machine; a quiet one needs seconds

}  // namespace

class TestTrainingStatus : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void one_alone_says_so();
  void two_know_of_each_other();
  void the_rounds_name_who_contributed();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  void start(const QString& name);
  QJsonObject status(const QString& name) const {
    return json_lines(run_node({"status", "--json", "--data-dir", path(name)}).out).value(0);
  }
  QJsonObject global(const QString& name) const {
    return status(name)["rounds"].toObject()["global"].toObject();
  }

  QTemporaryDir folder_;
  QMap<QString, std::shared_ptr<NodeProcess>> nodes_;
  std::unique_ptr<NodeProcess> tracker_;
  QString tracker_at_;
};

void TestTrainingStatus::initTestCase() {
  QVERIFY(folder_.isValid());
  QFile text(path("text"));
  QVERIFY(text.open(QIODevice::WriteOnly) && text.write(made_up_text(7, 60'000)) > 0);
  text.close();
  const ProcessResult made = run_node({"network",        "create",  "--from",     "devnet",
                                       "--name",         "reports", "--out",      path("reports.json"),
                                       "--layers",       "1",       "--hidden",   "32",
                                       "--head-dim",     "16",      "--vocab",    "300",
                                       "--experts",      "2",       "--sequence", "32",
                                       "--batch-tokens", "512",     "--h",        "200",
                                       "--grows",        "0"});
  QVERIFY2(made.ok(), made.text().constData());
  tracker_ = std::make_unique<NodeProcess>(QStringList{"tracker", "--json", "--profile", path("reports.json"),
                                                       "--address", "127.0.0.1", "--port", "0", "--lan"});
  const QJsonObject ready = wait_for_object(*tracker_, "ready");
  QVERIFY2(!ready.isEmpty(), tracker_->errors_so_far().constData());
  tracker_at_ = ready["id"].toString() + "@" + ready["address"].toString();
}

void TestTrainingStatus::start(const QString& name) {
  nodes_[name] = std::make_shared<NodeProcess>(
      QStringList{"run", "--json", "--data-dir", path(name), "--profile", path("reports.json"), "--text",
                  path("text"), "--lan", "--p2p-port", "0", "--p2p-address", "127.0.0.1", "--cpu-threads",
                  "1", "--eval-interval-steps", "0", "--tracker", tracker_at_});
  const QJsonObject joined = wait_for_object(*nodes_[name], "peers");
  QVERIFY2(!joined.isEmpty(), nodes_[name]->errors_so_far().constData());
}

void TestTrainingStatus::one_alone_says_so() {
  start("a");
  QTRY_VERIFY_WITH_TIMEOUT(global("a")["outer_syncs"].toInt() >= 1, patience_ms);
  const QJsonObject seen = global("a");
  QCOMPARE(seen["reports"].toInt(), 1);
  QCOMPARE(seen["loss_trend"].toString(), QString("insufficient_data"));
  QVERIFY(!seen["training_verified"].toBool());
  QVERIFY(seen["global_tokens"].toInt() > 0);
  const ProcessResult text = run_node({"status", "--data-dir", path("a")});
  QVERIFY2(text.out.contains("no other node trains with this one yet"), text.out.constData());
}

void TestTrainingStatus::two_know_of_each_other() {
  start("b");
  const auto both_know = [this] {
    for (const char* name : {"a", "b"}) {
      const QJsonObject seen = global(name);
      if (seen["reports"].toInt() != 2 || seen["total_nodes_training"].toInt() != 2 ||
          seen["wallets"].toInt() != 2 || seen["hash_agreement_rate"].toDouble() != 1 ||
          seen["hash_agreement_round"].toInt() < 1 || seen["sync_success_rate"].toDouble() <= 0)
        return false;
    }
    return true;
  };
  QVERIFY2(neuroshard::testing::seen_once(both_know, patience_ms),
           QJsonDocument(status("b")).toJson().constData());
  for (const char* name : {"a", "b"}) {
    const double loss = global(name)["global_avg_loss"].toDouble();
    QVERIFY2(loss > 0.5 && loss < 12, qPrintable(QString::number(loss)));
    const auto connected = [&] { return status(name)["peers"].toObject()["connected"].toInt() >= 1; };
    QVERIFY(neuroshard::testing::seen_once(connected, patience_ms));
  }
  const auto too_few = [&] { return status("a")["rounds"].toObject()["too_few_to_vote"].toBool(); };
  QVERIFY(neuroshard::testing::seen_once(too_few, patience_ms));
}

void TestTrainingStatus::the_rounds_name_who_contributed() {
  // The second node is a member first, and contributes to the round after.
  QList<QJsonObject> lines;
  const auto both_contributed = [&] {
    lines = json_lines(run_node({"status", "--json", "--rounds", "--data-dir", path("a")}).out);
    if (lines.size() != 2) return false;
    for (const QJsonValue& round : lines[1]["rounds"].toArray())
      if (round["contributors"].toInt() == 2) return true;
    return false;
  };
  QVERIFY(neuroshard::testing::seen_once(both_contributed, patience_ms));
  const QJsonArray rounds = lines[1]["rounds"].toArray(), nodes = lines[1]["nodes"].toArray();
  QVERIFY(!rounds.isEmpty());
  QSet<QString> contributed;
  bool together = false;
  for (const QJsonValue& round : rounds) {
    QSet<QString> who;
    for (const QJsonValue& member : round["who"].toArray())
      if (member["contributed"].toBool()) who.insert(member["id"].toString());
    QCOMPARE(who.size(), round["contributors"].toInt());
    together = together || who.size() == 2;
    contributed += who;
  }
  QVERIFY(together);
  QCOMPARE(contributed.size(), 2);
  QCOMPARE(nodes.size(), 2);
  QVERIFY(nodes[0]["mine"].toBool() && !nodes[1]["mine"].toBool());
  QVERIFY(contributed.contains(nodes[1]["id"].toString()));
  QVERIFY(nodes[0]["wallet"].toString() != nodes[1]["wallet"].toString());
  const ProcessResult text = run_node({"status", "--rounds", "--data-dir", path("a")});
  QVERIFY2(text.out.contains("2 of 2 members contributed"), text.out.constData());
}

NS_TEST(TestTrainingStatus)
#include "test_training_status.moc"
