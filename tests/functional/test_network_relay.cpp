// Nodes that nobody can dial, as real processes on the loopback interface: each listens at an address of
// which the others know nothing, so the dial-back fails and a relay stands in; another one when that is
// killed. No NAT is between them, so what was relayed goes on over a punched connection.
#include <QElapsedTimer>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestNetworkRelay : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void hidden_nodes_meet_through_a_relay_and_change_to_another();
  void a_node_alone_says_so();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  QJsonObject view(const QString& directory) const {
    return json_lines(run_node({"peers", "--json", "--data-dir", path(directory)}).out).value(0);
  }
  QStringList running(const QString& name, const QStringList& trackers, const QString& address) const {
    QStringList arguments{
        "run",   "--json",        "--data-dir", path(name),   "--profile", path("village.json"),
        "--lan", "--p2p-address", address,      "--p2p-port", "0"};
    for (const QString& tracker : trackers) arguments << "--tracker" << tracker;
    return arguments;
  }
  QTemporaryDir folder_;
};

void TestNetworkRelay::initTestCase() {
  const ProcessResult made =
      run_node({"network", "create", "--from", "devnet", "--name", "village", "--out", path("village.json")});
  QVERIFY2(made.ok(), made.text().constData());
}

void TestNetworkRelay::hidden_nodes_meet_through_a_relay_and_change_to_another() {
  QStringList trackers;
  std::vector<std::unique_ptr<NodeProcess>> serving;
  for (int i = 0; i < 2; ++i) {
    serving.push_back(
        std::make_unique<NodeProcess>(QStringList{"tracker", "--json", "--profile", path("village.json"),
                                                  "--address", "127.0.0.1", "--port", "0", "--lan"}));
    const QJsonObject ready = wait_for_object(*serving.back(), "ready");
    QVERIFY2(!ready.isEmpty(), serving.back()->errors_so_far().constData());
    trackers << ready["address"].toString();
  }
  NodeProcess a(running("a", trackers, "127.0.0.2")), b(running("b", trackers, "127.0.0.3"));
  QVERIFY2(!wait_for_object(a, "peers").isEmpty(), a.errors_so_far().constData());
  const QString id_b = wait_for_object(b, "peers")["id"].toString();
  QCOMPARE(id_b.size(), 64);

  QTRY_COMPARE_WITH_TIMEOUT(view("a")["reach"].toString(), QString("punchable"), 60'000);
  QTRY_VERIFY_WITH_TIMEOUT(trackers.contains(view("a")["relay"].toString()), 60'000);
  QVERIFY(view("a")["advertise"].toString().isEmpty());
  const auto way = [&] {
    for (const QJsonValue& peer : view("a")["peers"].toArray())
      if (peer["id"].toString() == id_b && peer["round_trip_s"].isDouble() &&
          peer["bytes_in"].toInteger() > 0)
        return peer["way"].toString();
    return QString();
  };
  QTRY_VERIFY_WITH_TIMEOUT(!way().isEmpty(), 90'000);
  QVERIFY2(way() == "relayed" || way() == "punched", qPrintable(way()));
  QTRY_COMPARE_WITH_TIMEOUT(way(), QString("punched"), 90'000);

  const QString held = view("a")["relay"].toString();
  serving[static_cast<std::size_t>(trackers.indexOf(held))]->kill_now();
  QElapsedTimer since_death;
  since_death.start();
  const QString other = trackers[1 - trackers.indexOf(held)];
  QTRY_COMPARE_WITH_TIMEOUT(view("a")["relay"].toString(), other, 30'000);
  qInfo("another relay after %lld ms", since_death.elapsed());
  for (NodeProcess* node : {&a, &b}) {
    node->terminate();
    const ProcessResult stopped = node->finish();
    QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
  }
}

void TestNetworkRelay::a_node_alone_says_so() {
  NodeProcess solo({"run", "--json", "--data-dir", path("solo"), "--profile", "solo"});
  QVERIFY2(!wait_for_object(solo, "ready").isEmpty(), solo.errors_so_far().constData());
  const QJsonObject alone = view("solo");
  QVERIFY(alone.contains("taking_part") && !alone["taking_part"].toBool());
  solo.terminate();
  QVERIFY(!solo.finish().crashed);
  const ProcessResult nobody = run_node({"peers", "--data-dir", path("solo")});
  QVERIFY(!nobody.ok());
  QVERIFY2(nobody.err.contains("no core runs here"), nobody.text().constData());
}

NS_TEST(TestNetworkRelay)
#include "test_network_relay.moc"
