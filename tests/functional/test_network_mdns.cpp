// Nodes of one local network, as people start them, that know no other node: each in a network namespace of
// its own on one segment, they find each other by multicast DNS. One of another network stays alone.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/net_lab.h"
#include "tests/support/process.h"

using namespace neuroshard::test;  // NOLINT

class TestNetworkMdns : public QObject {
  Q_OBJECT
 public:
  QString why_not;

 private Q_SLOTS:
  void initTestCase();
  void two_find_each_other();

 private:
  QJsonObject peers_of(const QString& home) const {
    const ShellResult result = shell(QString("ip netns exec %1 %2 peers --json --data-dir %3")
                                         .arg(home, node_program(), folder_.filePath(home)));
    for (const QByteArray& line : result.text.split('\n')) {
      const QJsonObject object = QJsonDocument::fromJson(line).object();
      if (!object.isEmpty()) return object;
    }
    return {};
  }
  std::unique_ptr<LabProcess> start(const QString& home, const QString& profile) const {
    return std::make_unique<LabProcess>(
        home, node_program(),
        QStringList{"run", "--json", "--data-dir", folder_.filePath(home), "--profile",
                    folder_.filePath(profile), "--lan", "--p2p-port", "9100"});
  }
  QTemporaryDir folder_{"/run/mdns-XXXXXX"};
};

void TestNetworkMdns::initTestCase() {
  if (!why_not.isEmpty()) QSKIP(qPrintable(why_not));
  QString script =
      "ip netns add segment; ip -n segment link add br0 type bridge; ip -n segment link set br0 up\n";
  for (const QString home : {"one", "two", "other"}) {
    static int number = 0;
    script += QString(
                  "ip netns add %1; ip -n %1 link set lo up\n"
                  "ip link add h%1 netns segment type veth peer name eth0 netns %1\n"
                  "ip -n segment link set h%1 master br0 up\n"
                  "ip -n %1 addr add 10.9.0.%2/24 dev eth0; ip -n %1 link set eth0 up\n"
                  "ip -n %1 route add default via 10.9.0.254\n")
                  .arg(home)
                  .arg(++number);
  }
  const ShellResult made = shell(script);
  QVERIFY2(made.exit_code == 0, made.text.constData());
  for (const QString name : {"village", "hamlet"}) {
    const ShellResult created = shell(QString("%1 network create --from devnet --name %2 --out %3")
                                          .arg(node_program(), name, folder_.filePath(name + ".json")));
    QVERIFY2(created.exit_code == 0, created.text.constData());
  }
}

void TestNetworkMdns::two_find_each_other() {
  const auto one = start("one", "village.json"), two = start("two", "village.json"),
             other = start("other", "hamlet.json");
  const auto said = two->line("{\"peers\":true", 60'000);
  QVERIFY2(said.has_value(), two->seen().constData());
  QElapsedTimer time;
  time.start();
  const QString id = QJsonDocument::fromJson("{\"peers\":true" + *said).object()["id"].toString();
  const auto met = [&] {
    for (const QJsonValue& peer : peers_of("one")["peers"].toArray())
      if (peer["id"].toString() == id && peer["round_trip_s"].isDouble()) return true;
    return false;
  };
  QTRY_VERIFY2_WITH_TIMEOUT(met(), QJsonDocument(peers_of("one")).toJson().constData(), 60'000);
  qInfo("met after %lld ms", time.elapsed());
  const QJsonObject alone = peers_of("other");
  QVERIFY(!alone.isEmpty());
  QCOMPARE(alone["known_nodes"].toInt(), 0);
  QVERIFY(alone["peers"].toArray().isEmpty());
}

int main(int argc, char** argv) {
  const QString why_not = enter_net_lab(argv, {});
  const QCoreApplication application(argc, argv);
  TestNetworkMdns test;
  test.why_not = why_not;
  return QTest::qExec(&test, argc, argv);
}
#include "test_network_mdns.moc"
