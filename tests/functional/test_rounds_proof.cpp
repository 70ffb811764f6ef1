// Real processes, one of which signs two contributions to a round and sends every second member the other one.
// A member that has both has evidence. A block carries it: the wallet is expelled, all ban the node and end
// their connections to it.
#include <QJsonArray>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsProof : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void who_signs_two_payloads_is_banned_by_all();
  void nobody_talks_with_it_any_more();

 private:
  QJsonObject network(const QString& name) const {
    return json_lines(run_node({"peers", "--json", "--data-dir", run_.path(name)}).out).value(0);
  }
  static QByteArray text(const QJsonObject& object) { return QJsonDocument(object).toJson(); }

  const QStringList honest_{"a", "b", "c"};
  RoundsRun run_;
};

void TestRoundsProof::who_signs_two_payloads_is_banned_by_all() {
  run_.founder = honest_.first();
  QCOMPARE(run_.make("proof", "20"), QByteArray());
  QCOMPARE(run_.start_all(honest_), QByteArray());
  QVERIFY(run_.together(honest_));
  run_.launch("liar", "text", {"two-payloads"});
  QCOMPARE(run_.joined("liar"), QByteArray());
  const QString liar = run_.status("liar")["node_id"].toString();
  QVERIFY(!liar.isEmpty());
  for (const QString& name : honest_) {
    QTRY_VERIFY2_WITH_TIMEOUT(!network(name)["bans"].toArray().isEmpty(), text(network(name)).constData(),
                              RoundsRun::patience_ms);
    const QJsonObject seen = network(name);
    const QJsonArray bans = seen["bans"].toArray();
    QVERIFY2(bans.size() == 1 && bans[0]["id"].toString() == liar, text(seen).constData());
    QVERIFY2(bans[0]["reason"].toString().contains("equivocation: two signatures that contradict each other"),
             text(seen).constData());
    const double minutes = (bans[0]["until_ms"].toDouble() - QDateTime::currentMSecsSinceEpoch()) / 60'000.0;
    QVERIFY2(minutes > 50 && minutes <= 60, text(seen).constData());
    int counted = 0;
    for (const QJsonValue& one : seen["refusals"].toArray())
      if (one["reason"].toString() == "equivocation: two signatures that contradict each other")
        counted = one["count"].toInt();
    QVERIFY2(counted == 1, text(seen).constData());
    QFile log(run_.path(name) + "/logs/neuroshardd.log");
    QVERIFY(log.open(QIODevice::ReadOnly));
    QVERIFY(
        log.readAll().contains(liar.left(12).toUtf8() + "… signed two statements that exclude each other"));
  }
  QVERIFY2(run_.node("liar").errors_so_far().contains("\"attack\": \"two-payloads\""),
           run_.node("liar").errors_so_far().constData());
}

// A ban ends the connections on both ends: neither asks the other any more.
void TestRoundsProof::nobody_talks_with_it_any_more() {
  const QString liar = run_.status("liar")["node_id"].toString();
  const auto connected = [&](const QString& name) {
    for (const QJsonValue& peer : network(name)["peers"].toArray())
      if (peer["id"].toString() == liar) return peer["connected"].toBool();
    return false;
  };
  for (const QString& name : honest_) {
    QTRY_VERIFY2_WITH_TIMEOUT(!connected(name), text(network(name)).constData(), RoundsRun::patience_ms);
    QCOMPARE(network(name)["bans"].toArray().size(), 1);
    QCOMPARE(run_.rounds(name)["corruptions"].toInt(), 0);
  }
  run_.kill_all();
}

NS_TEST(TestRoundsProof)
#include "test_rounds_proof.moc"
