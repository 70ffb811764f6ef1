// The product behind real routers: a tracker in the middle and nodes in several kinds of home, as people
// start them. Each finds out how it is reached and advertises what was dialled. Pairs connect directly where
// either side can be dialled, by a punched connection where both have ordinary NATs, and through a relay
// otherwise. NS_NAT_FULL=1 (tests/long.sh nat-product) takes all homes and all pairs, and a router that is
// restarted.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "tests/support/nat_homes.h"
#include "tests/support/process.h"

using namespace neuroshard::test;  // NOLINT

namespace {

struct Home {
  const char* name;
  const char* reach;
  const char* outside;  // whose address it advertises; empty: none
};
constexpr Home homes_in_ci[] = {{"public", "public", "11.22.40.10"},
                                {"upnp", "mapped", "11.22.41.11"},
                                {"plain", "punchable", ""},
                                {"plain2", "punchable", ""},
                                {"symmetric", "relayed only", ""}};
constexpr Home more_homes[] = {
    {"natpmp", "mapped", "11.22.42.12"}, {"double", "relayed only", ""}, {"blocked", "relayed only", ""}};

// The traffic of the machine with the relay, packet by packet without the Ethernet head.
constexpr const char* capture_program = R"(
import socket, sys
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
packets.bind(("br0", 0))
out = open(sys.argv[1], "wb", buffering=0)
print("captures", flush=True)
while out.tell() < 256 << 20:
    out.write(packets.recv(65535)[14:])
)";

}  // namespace

class TestNatProduct : public QObject {
  Q_OBJECT
 public:
  QString why_not;

 private Q_SLOTS:
  void initTestCase();
  void each_home_finds_its_class();
  void pairs_connect_as_they_should();
  void the_relay_sees_no_plaintext();
  void a_test_is_asked_of_the_running_node();
  void a_router_that_restarts_gets_its_port_again();
  void nothing_stays_open_at_the_router();

 private:
  QJsonObject ask(const QString& home, const QString& command) const { return homes_.ask(home, command); }
  QByteArray log_of(const QString& home) const { return homes_.log_of(home).right(3000); }
  // The path of `home` to the node `id`; empty: none.
  QString way(const QString& home, const QString& id) const {
    for (const QJsonValue& peer : ask(home, "peers")["peers"].toArray())
      if (peer["id"].toString() == id && peer["round_trip_s"].isDouble()) return peer["way"].toString();
    return {};
  }

  const bool full_ = qEnvironmentVariableIsSet("NS_NAT_FULL");
  NatHomes homes_;
  QList<Home> chosen_;
  std::unique_ptr<LabProcess> tracker_, capture_;
  QMap<QString, std::shared_ptr<LabProcess>> nodes_;
  QMap<QString, QString> ids_;
};

void TestNatProduct::initTestCase() {
  if (!why_not.isEmpty()) QSKIP(qPrintable(why_not));
  for (const Home& home : homes_in_ci) chosen_ << home;
  if (full_)
    for (const Home& home : more_homes) chosen_ << home;
  QVERIFY(homes_.build());
  const QString profile = homes_.folder.filePath("village.json");
  QVERIFY(NatHomes::run(
      QString("%1 network create --from devnet --name village --out %2").arg(node_program(), profile)));
  capture_ = std::make_unique<LabProcess>(
      "pub", "python3", QStringList{"-c", capture_program, homes_.folder.filePath("packets")});
  QVERIFY2(capture_->line("captures").has_value(), capture_->seen().constData());
  tracker_ = std::make_unique<LabProcess>(
      "pub", node_program(),
      QStringList{"tracker", "--json", "--profile", profile, "--address", "11.22.33.1", "--port", "443"});
  QVERIFY2(tracker_->line("{\"ready\"").has_value(), tracker_->seen().constData());
  for (const Home& home : chosen_) {
    nodes_[home.name] = std::make_shared<LabProcess>(
        home.name, node_program(),
        QStringList{"run", "--json", "--data-dir", homes_.folder.filePath(home.name), "--profile", profile,
                    "--tracker", "11.22.33.1:443", "--p2p-port", "9100"});
    const auto said = nodes_[home.name]->line("{\"peers\":true");
    QVERIFY2(said.has_value(), nodes_[home.name]->seen().constData());
    ids_[home.name] = QJsonDocument::fromJson("{\"peers\":true" + *said).object()["id"].toString();
  }
}

void TestNatProduct::each_home_finds_its_class() {
  for (const Home& home : chosen_) {
    QElapsedTimer time;
    time.start();
    QTRY_VERIFY2_WITH_TIMEOUT(ask(home.name, "peers")["reach"].toString() == home.reach,
                              home.name + QByteArray(": ") + log_of(home.name), 60'000);
    const QJsonObject view = ask(home.name, "peers");
    const QString wanted = *home.outside != '\0' ? QString("%1:9100").arg(home.outside) : QString();
    QCOMPARE(view["advertise"].toString(), wanted);
    if (wanted.isEmpty()) {
      QTRY_VERIFY2_WITH_TIMEOUT(!ask(home.name, "peers")["relay"].toString().isEmpty(),
                                log_of(home.name).constData(), 30'000);
      QVERIFY2(
          view["advice"].toString().contains("forward") || view["advice"].toString().contains("provider"),
          qPrintable(view["advice"].toString()));
    }
  }
}

void TestNatProduct::pairs_connect_as_they_should() {
  if (ids_.size() != chosen_.size()) QSKIP("not all nodes run");
  QMap<QString, int> ways;
  for (const Home& a : std::as_const(chosen_)) {
    for (const Home& b : std::as_const(chosen_)) {
      const bool dialled = *a.outside != '\0' || *b.outside != '\0';
      const bool both_plain = a.reach == QString("punchable") && b.reach == QString("punchable");
      const QString wanted = dialled ? "direct" : both_plain ? "punched" : "relayed";
      // Each pair once: who can be dialled is called. In CI a public or a plain one calls.
      const bool b_is_dialled = *b.outside != '\0', a_is_dialled = *a.outside != '\0';
      if (&a == &b || (a_is_dialled && !b_is_dialled)) continue;
      if (a_is_dialled == b_is_dialled && &a > &b) continue;
      if (!full_ && QString(a.name) == "symmetric") continue;
      QTRY_VERIFY2_WITH_TIMEOUT(
          way(a.name, ids_[b.name]) == wanted,
          qPrintable(QString("%1 and %2 should be %3, and are %4\n%5")
                         .arg(a.name, b.name, wanted, way(a.name, ids_[b.name]), log_of(a.name))),
          150'000);
      ++ways[wanted];
    }
  }
  qInfo("%d direct, %d punched, %d relayed", ways["direct"], ways["punched"], ways["relayed"]);
  QVERIFY(ways["direct"] > 0 && ways["punched"] > 0 && ways["relayed"] > 0);
}

// Calls through it are asked for in plain words; what the nodes tell each other, their records first of all,
// is not to be read.
void TestNatProduct::the_relay_sees_no_plaintext() {
  if (!capture_) QSKIP("the laboratory does not stand");
  QFile file(homes_.folder.filePath("packets"));
  QVERIFY(file.open(QIODevice::ReadOnly));
  const QByteArray packets = file.readAll();
  capture_->kill_now();
  QVERIFY(packets.contains("CONNECT "));
  qInfo("%lld bytes of the relay's wire", static_cast<long long>(packets.size()));
  const QByteArray version_1("\1\0", 2);
  for (const char* magic : {"NSNR", "NSDR"}) QVERIFY2(!packets.contains(magic + version_1), magic);
  QVERIFY(!packets.contains("PRI * HTTP/2.0"));
}

void TestNatProduct::a_test_is_asked_of_the_running_node() {
  const QJsonObject view = ask("upnp", "reachability");
  QCOMPARE(view["reach"].toString(), QString("mapped"));
  QVERIFY2(view["summary"].toString().contains("UPnP"), qPrintable(view["summary"].toString()));
}

void TestNatProduct::a_router_that_restarts_gets_its_port_again() {
  if (!full_) QSKIP("the router is looked at once a minute: only in tests/long.sh nat-product");
  for (const QString site : {"upnp", "natpmp"}) {
    homes_.routers[site]->terminate();
    QVERIFY(NatHomes::run(QString("ip netns exec r-%1 nft flush chain inet miniupnpd prerouting_miniupnpd\n"
                                  "ip netns exec r-%1 nft flush chain inet miniupnpd miniupnpd")
                              .arg(site)));
    QTRY_VERIFY2_WITH_TIMEOUT(ask(site, "peers")["advertise"].toString().isEmpty(), log_of(site).constData(),
                              150'000);
    homes_.routers[site] = homes_.start_miniupnpd("r-" + site, site == "upnp", site == "natpmp");
    QTRY_VERIFY2_WITH_TIMEOUT(!ask(site, "peers")["advertise"].toString().isEmpty(), log_of(site).constData(),
                              150'000);
  }
}

void TestNatProduct::nothing_stays_open_at_the_router() {
  if (nodes_.isEmpty()) QSKIP("no node runs");
  QVERIFY(shell("ip netns exec r-upnp nft list ruleset").text.contains("9100"));
  for (const auto& node : nodes_) node->terminate();
  for (const auto& node : nodes_) QTRY_VERIFY_WITH_TIMEOUT(!node->running(), 30'000);
  QVERIFY(!shell("ip netns exec r-upnp nft list ruleset").text.contains("9100"));
}

int main(int argc, char** argv) {
  const QString why_not = enter_net_lab(argv, {"nft", "miniupnpd", "sysctl", "python3"});
  const QCoreApplication application(argc, argv);
  TestNatProduct test;
  test.why_not = why_not;
  return QTest::qExec(&test, argc, argv);
}
#include "test_nat_product.moc"
