// Seven homes around one piece of internet, in network namespaces with real routers (nftables, miniupnpd) and
// a real STUN server (coturn): each finds out how it can be reached, and all pairs connect the way they
// should.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QTemporaryDir>
#include <QtTest>

#include "core/nat/reachability.h"
#include "tests/support/net_lab.h"

using namespace neuroshard;
using nat::Path;
using nat::Reach;
using test::LabProcess;
using test::shell;

namespace {

struct Site {
  const char* name;
  Reach expected;
  const char* through;
};
// The double NAT's outer router is a carrier's and gives each destination another port; the last one lets
// nothing out but TCP to port 443.
constexpr Site sites[] = {
    {"public", Reach::Public, ""},
    {"upnp", Reach::Mapped, "UPnP"},
    {"natpmp", Reach::Mapped, "NAT-PMP"},
    {"plain", Reach::Punchable, ""},
    {"symmetric", Reach::RelayedOnly, ""},
    {"double", Reach::RelayedOnly, ""},
    {"blocked", Reach::RelayedOnly, ""},
    {"plain2", Reach::Punchable, ""},  // the second plain one, for punching
};
constexpr int site_count = 8;

Path expected_path(const Site& a, const Site& b) {
  const auto open = [](const Site& s) { return s.expected == Reach::Public || s.expected == Reach::Mapped; };
  if (open(a) || open(b)) return Path::Direct;
  return a.expected == Reach::Punchable && b.expected == Reach::Punchable ? Path::Punched : Path::Relayed;
}

// The chains that miniupnpd fills, a NAT and a firewall that drops what nobody asked for.
const char* const router_rules = R"(
table ip nat {
 chain post { type nat hook postrouting priority 100; policy accept;
  oifname "wan" MASQUERADE
 }
}
table inet filter {
 chain input { type filter hook input priority 0; policy accept;
  ct state established,related accept
  iifname "wan" drop
 }
 chain forward { type filter hook forward priority 0; policy drop;
  ct state established,related accept
  FROM_LAN
  ct status dnat accept
 }
}
table inet miniupnpd {
 chain forward { type filter hook forward priority -10; policy accept;
  jump miniupnpd
 }
 chain miniupnpd {
 }
 chain prerouting { type nat hook prerouting priority -100; policy accept;
  jump prerouting_miniupnpd
 }
 chain postrouting { type nat hook postrouting priority 90; policy accept;
  jump postrouting_miniupnpd
 }
 chain prerouting_miniupnpd {
 }
 chain postrouting_miniupnpd {
 }
}
)";

const char* const miniupnpd_settings = R"(ext_ifname=wan
listening_ip=lan
enable_upnp=UPNP
enable_natpmp=NATPMP
secure_mode=yes
upnp_table_name=miniupnpd
upnp_nat_table_name=miniupnpd
upnp_forward_chain=miniupnpd
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
min_lifetime=120
max_lifetime=86400
uuid=00000000-0000-0000-0000-00000000000N
notify_interval=30
system_uptime=no
allow 1024-65535 10.0.0.0/8 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
)";

}  // namespace

class TestNatLab : public QObject {
  Q_OBJECT
 public:
  QString why_not;

 private Q_SLOTS:
  void initTestCase();
  void each_site_finds_its_class();
  void all_pairs_connect_as_they_should();
  void a_turn_server_lets_in_whom_it_was_told();
  void a_killed_relay_is_joined_again();
  void a_symmetric_nat_is_not_punched();
  void the_command_finds_the_same_and_leaves_nothing_open();
  void a_restarted_router_gets_its_mapping_again_data();
  void a_restarted_router_gets_its_mapping_again();
  void a_changed_address_is_told();

 private:
  bool run(const QString& script) {
    const auto result = shell(script);
    if (result.exit_code != 0) qWarning("%s\n%s", qPrintable(script), result.text.constData());
    return result.exit_code == 0;
  }
  // A router `ns` whose outside interface is on `segment` (a namespace with a bridge br0).
  bool make_router(const QString& ns, const QString& segment, const QString& wan,
                   const QString& default_gateway, const QString& lan, const QString& masquerade,
                   const QString& from_lan);
  bool make_host(const QString& ns, const QString& router, const QString& address, const QString& gateway);
  std::unique_ptr<LabProcess> start_miniupnpd(const QString& router, bool upnp, bool nat_pmp);
  void start_services();
  QString ask(const QString& site, const QString& command, int timeout_ms = 60'000);
  QString outside_of(const QString& site) const { return advertised_.value(site); }

  const QString peer_ = QCoreApplication::applicationDirPath() + "/nat_lab_peer";
  QTemporaryDir folder_{"/run/nat-lab-XXXXXX"};  // on a file system of the laboratory: it goes with it
  std::unique_ptr<LabProcess> services_, coturn_;
  QMap<QString, std::shared_ptr<LabProcess>> nodes_;
  QMap<QString, std::shared_ptr<LabProcess>> routers_;  // their miniupnpd
  QMap<QString, QString> reach_, advertised_;
};

bool TestNatLab::make_router(const QString& ns, const QString& segment, const QString& wan,
                             const QString& default_gateway, const QString& lan, const QString& masquerade,
                             const QString& from_lan) {
  const QString port = ns.left(10) + "w";
  QString rules = router_rules;
  rules.replace("MASQUERADE", masquerade).replace("FROM_LAN", from_lan);
  QFile file(folder_.filePath(ns + ".nft"));
  if (!file.open(QIODevice::WriteOnly) || file.write(rules.toUtf8()) < 0) return false;
  file.close();
  QString script =
      QString(
          "ip netns add %1; ip -n %1 link set lo up\n"
          "ip link add %5 netns %2 type veth peer name wan netns %1\n"
          "ip -n %2 link set %5 master br0 up\n"
          "ip -n %1 addr add %3 dev wan; ip -n %1 link set wan up\n"
          "ip -n %1 link add lan type bridge; ip -n %1 addr add %4 dev lan; ip -n %1 link set lan up\n"
          "ip netns exec %1 sysctl -qw net.ipv4.ip_forward=1\n"
          "ip netns exec %1 nft -f %6\n")
          .arg(ns, segment, wan, lan, port, file.fileName());
  if (!default_gateway.isEmpty())
    script += QString("ip -n %1 route add default via %2\n").arg(ns, default_gateway);
  return run(script);
}

bool TestNatLab::make_host(const QString& ns, const QString& router, const QString& address,
                           const QString& gateway) {
  return run(QString("ip netns add %1; ip -n %1 link set lo up\n"
                     "ip link add l%3 netns %2 type veth peer name eth0 netns %1\n"
                     "ip -n %2 link set l%3 master lan up\n"
                     "ip -n %1 addr add %4 dev eth0; ip -n %1 link set eth0 up\n"
                     "ip -n %1 route add default via %5\n")
                 .arg(ns, router, ns.left(10), address, gateway));
}

std::unique_ptr<LabProcess> TestNatLab::start_miniupnpd(const QString& router, bool upnp, bool nat_pmp) {
  QString settings = miniupnpd_settings;
  settings.replace("UPNP\n", upnp ? "yes\n" : "no\n").replace("NATPMP\n", nat_pmp ? "yes\n" : "no\n");
  settings.replace("000N", QString("%1").arg(qHash(router) % 10000, 4, 10, QChar('0')));
  QFile file(folder_.filePath(router + ".conf"));
  if (!file.open(QIODevice::WriteOnly) || file.write(settings.toUtf8()) < 0) return nullptr;
  file.close();
  return std::make_unique<LabProcess>(
      router, "miniupnpd", QStringList{"-d", "-f", file.fileName(), "-P", folder_.filePath(router + ".pid")});
}

void TestNatLab::start_services() {
  services_ =
      std::make_unique<LabProcess>("pub", peer_, QStringList{"services", "11.22.33.1:443", "11.22.33.9:443"});
  QVERIFY2(services_->line("= ") == QByteArray("ready"), services_->seen().constData());
}

QString TestNatLab::ask(const QString& site, const QString& command, int timeout_ms) {
  LabProcess& node = *nodes_[site];
  node.say(command);
  return node.line("= ", timeout_ms).value_or("no answer");
}

void TestNatLab::initTestCase() {
  if (!why_not.isEmpty()) QSKIP(qPrintable(why_not));
  QVERIFY(
      run("ip netns add pub; ip -n pub link set lo up\n"
          "ip -n pub link add br0 type bridge; ip -n pub link set br0 up\n"
          "ip -n pub addr add 11.22.33.1/24 dev br0; ip -n pub addr add 11.22.33.9/24 dev br0\n"
          "ip netns add public; ip -n public link set lo up\n"
          "ip link add pubh netns pub type veth peer name eth0 netns public\n"
          "ip -n pub link set pubh master br0 up\n"
          "ip -n public addr add 11.22.33.10/24 dev eth0; ip -n public link set eth0 up\n"));
  const QString all = "iifname \"lan\" accept", plain = "masquerade", symmetric = "masquerade fully-random";
  QVERIFY(make_router("r-upnp", "pub", "11.22.33.11/24", {}, "10.1.0.1/24", plain, all));
  QVERIFY(make_router("r-natpmp", "pub", "11.22.33.12/24", {}, "10.2.0.1/24", plain, all));
  QVERIFY(make_router("r-plain", "pub", "11.22.33.13/24", {}, "10.3.0.1/24", plain, all));
  QVERIFY(make_router("r-symmetric", "pub", "11.22.33.14/24", {}, "10.4.0.1/24", symmetric, all));
  QVERIFY(make_router("r-carrier", "pub", "11.22.33.15/24", {}, "100.64.5.1/24", symmetric, all));
  QVERIFY(make_router("r-blocked", "pub", "11.22.33.16/24", {}, "10.6.0.1/24", symmetric,
                      "iifname \"lan\" meta l4proto tcp accept"));
  QVERIFY(make_router("r-plain2", "pub", "11.22.33.17/24", {}, "10.7.0.1/24", plain, all));
  // The inner router of the double NAT stands on the carrier's segment.
  QVERIFY(
      run("ip -n r-carrier link set lan down; ip -n r-carrier link set lan name br0; ip -n r-carrier link "
          "set br0 up\n"
          "ip netns exec r-carrier nft add rule inet filter forward iifname br0 accept"));
  QVERIFY(make_router("r-double", "r-carrier", "100.64.5.2/24", "100.64.5.1", "10.5.0.1/24", plain, all));
  const QMap<QString, QString> networks{{"upnp", "10.1.0"},      {"natpmp", "10.2.0"}, {"plain", "10.3.0"},
                                        {"symmetric", "10.4.0"}, {"double", "10.5.0"}, {"blocked", "10.6.0"},
                                        {"plain2", "10.7.0"}};
  for (auto it = networks.begin(); it != networks.end(); ++it)
    QVERIFY(make_host(it.key(), "r-" + it.key(), it.value() + ".2/24", it.value() + ".1"));
  routers_["upnp"] = start_miniupnpd("r-upnp", true, false);
  routers_["natpmp"] = start_miniupnpd("r-natpmp", false, true);
  routers_["double"] = start_miniupnpd("r-double", true, true);

  coturn_ = std::make_unique<LabProcess>(
      "pub", "turnserver",
      QStringList{"-n", "--lt-cred-mech", "--user=nsd:secret", "--realm=nsd.test", "--relay-ip=11.22.33.1",
                  "--listening-ip=11.22.33.1", "--listening-ip=11.22.33.9", "--listening-port=3478",
                  "--no-tls", "--no-dtls", "--no-cli", "--log-file=stdout", "--simple-log",
                  "--userdb=" + folder_.filePath("db"), "--pidfile=" + folder_.filePath("coturn.pid")});
  start_services();
  for (const Site& site : sites) {
    nodes_[site.name] =
        std::make_shared<LabProcess>(site.name, peer_,
                                     QStringList{"node", site.name, "9000", "11.22.33.1:443",
                                                 "11.22.33.9:443", "11.22.33.1:3478", "11.22.33.9:3478"});
    QVERIFY2(nodes_[site.name]->line("= ") == QByteArray("ready"), nodes_[site.name]->seen().constData());
  }
  // Ready when a stranger can ask it: coturn and the routers say nothing of use.
  QTRY_VERIFY_WITH_TIMEOUT(!ask("public", "mapping").startsWith("error"), 30'000);
}

void TestNatLab::each_site_finds_its_class() {
  for (const Site& site : sites) nodes_[site.name]->say("reach");
  for (const Site& site : sites) {
    const QStringList answer = QString(nodes_[site.name]->line("= ", 120'000).value_or("")).split('|');
    const QByteArray seen = nodes_[site.name]->seen();
    QVERIFY2(answer.size() == 3, site.name + QByteArray(": ") + seen);
    QVERIFY2(answer[0].toStdString() == nat::to_text(site.expected), site.name + QByteArray(": ") + seen);
    QVERIFY2(answer[1] == site.through, seen.constData());
    reach_[site.name] = answer[0];
    advertised_[site.name] = answer[2];
  }
  const QByteArray words = nodes_["double"]->seen();
  QVERIFY2(words.contains("another router in front"), words.constData());
  QVERIFY2(nodes_["blocked"]->seen().contains("block UDP"), nodes_["blocked"]->seen().constData());
  QVERIFY2(nodes_["plain"]->seen().contains("forward TCP port 9000 to 10.3.0.2"),
           nodes_["plain"]->seen().constData());
}

void TestNatLab::all_pairs_connect_as_they_should() {
  if (reach_.size() != site_count) QSKIP("the classes are not known");
  for (const Site& site : sites) QCOMPARE(ask(site.name, "join"), QString("joined"));
  int pairs = 0;
  QMap<QString, int> paths;
  for (int i = 0; i < site_count; ++i) {
    for (int j = i + 1; j < site_count; ++j) {
      const Site &a = sites[i], &b = sites[j];
      const Path path = expected_path(a, b);
      const QByteArray pair = QByteArray(a.name) + " and " + b.name + ", ";
      if (path == Path::Direct) {
        const bool b_is_open = !outside_of(b.name).isEmpty();
        const Site &caller = b_is_open ? a : b, &callee = b_is_open ? b : a;
        const QString answer = ask(caller.name, "dial " + outside_of(callee.name));
        QVERIFY2(answer == callee.name, pair + answer.toUtf8());
      } else if (path == Path::Punched) {
        const QString outside_a = ask(a.name, "mapping"), outside_b = ask(b.name, "mapping");
        nodes_[a.name]->say("punch " + outside_b + " 15000");
        const QString at_b = ask(b.name, "punch " + outside_a + " 15000");
        const QString at_a = nodes_[a.name]->line("= ", 60'000).value_or("no answer");
        QVERIFY2(at_a == b.name && at_b == a.name, pair + at_a.toUtf8() + " / " + at_b.toUtf8());
      } else {
        const QString answer = ask(a.name, QString("relay ") + b.name),
                      back = ask(b.name, QString("relay ") + a.name);
        QVERIFY2(answer == b.name && back == a.name, pair + answer.toUtf8() + " / " + back.toUtf8());
      }
      ++pairs;
      ++paths[QString::fromStdString(std::string(nat::to_text(path)))];
    }
  }
  QCOMPARE(pairs, site_count * (site_count - 1) / 2);
  qInfo("%d pairs: %d direct, %d punched, %d relayed", pairs, paths["direct"], paths["punched"],
        paths["relayed"]);
}

void TestNatLab::a_turn_server_lets_in_whom_it_was_told() {
  const QString relayed = ask("symmetric", "turn 11.22.33.10");
  QVERIFY2(relayed.startsWith("11.22.33.1:"), qPrintable(relayed));
  QCOMPARE(ask("public", "dial " + relayed), QString("symmetric"));
  QVERIFY(ask("plain", "dial " + relayed).startsWith("error"));
}

void TestNatLab::a_killed_relay_is_joined_again() {
  QCOMPARE(ask("symmetric", "relay blocked"), QString("blocked"));
  services_->kill_now();
  QVERIFY(ask("symmetric", "relay blocked").startsWith("error"));
  start_services();
  QElapsedTimer since_start;
  since_start.start();
  QTRY_COMPARE_WITH_TIMEOUT(ask("symmetric", "relay blocked"), QString("blocked"), 30'000);
  qInfo("the relay is back: %lld ms", since_start.elapsed());
}

void TestNatLab::a_symmetric_nat_is_not_punched() {
  const QString outside_a = ask("plain", "mapping"), outside_b = ask("symmetric", "mapping");
  QVERIFY2(!outside_a.startsWith("error") && !outside_b.startsWith("error"),
           qPrintable(outside_a + outside_b));
  nodes_["plain"]->say("punch " + outside_b + " 4000");
  const QString at_b = ask("symmetric", "punch " + outside_a + " 4000");
  const QString at_a = nodes_["plain"]->line("= ", 30'000).value_or("no answer");
  QVERIFY2(at_a.startsWith("error") && at_b.startsWith("error"), qPrintable(at_a + " / " + at_b));
  QVERIFY2(at_a.contains("no direct connection"), qPrintable(at_a));
}

void TestNatLab::the_command_finds_the_same_and_leaves_nothing_open() {
  const auto command = [this](const QString& site, const QString& more) {
    const auto result =
        shell(QString("ip netns exec %1 %2/neuroshardd reachability --json --quiet --port 9100 --data-dir %3 "
                      "--stun 11.22.33.1:3478 --stun 11.22.33.9:3478 %4")
                  .arg(site, qEnvironmentVariable("NS_BIN_DIR"), folder_.filePath("data"), more),
              90'000);
    if (result.exit_code != 0) qWarning("%s", result.text.constData());
    return QJsonDocument::fromJson(result.text).object();
  };
  const QJsonObject plain = command("plain", "--no-upnp --no-nat-pmp");
  QCOMPARE(plain["reach"].toString(), QString("punchable"));
  QCOMPARE(plain["tcp"].toObject()["mapping"].toString(), QString("endpoint-independent"));
  QVERIFY(plain["advice"].toString().contains("forward TCP port 9100 to 10.3.0.2"));
  const QJsonObject upnp = command("upnp", {});
  QCOMPARE(upnp["port_seems_open"].toBool(), true);  // nobody outside was asked to dial it
  QCOMPARE(upnp["verified"].toBool(), false);
  const auto rules = shell("ip netns exec r-upnp nft list ruleset");
  QVERIFY(rules.exit_code == 0 && !rules.text.contains("9100"));
}

void TestNatLab::a_restarted_router_gets_its_mapping_again_data() {
  QTest::addColumn<QString>("site");
  QTest::addColumn<QString>("way");
  QTest::newRow("UPnP") << "upnp"
                        << "UPnP";
  QTest::newRow("NAT-PMP") << "natpmp"
                           << "NAT-PMP";
}

void TestNatLab::a_restarted_router_gets_its_mapping_again() {
  QFETCH(QString, site);
  QFETCH(QString, way);
  LabProcess& node = *nodes_[site];
  QCOMPARE(ask(site, "keep " + way), QString("keeping"));
  const auto mapped = node.line("! mapped ");
  QVERIFY2(mapped.has_value(), node.seen().right(600).constData());
  const QString outside = QString(*mapped).section(' ', 0, 0);
  QCOMPARE(ask("public", "dial " + outside), site);

  routers_[site]->terminate();
  const QString router = "r-" + site;
  QVERIFY(run(QString("ip netns exec %1 nft flush chain inet miniupnpd prerouting_miniupnpd\n"
                      "ip netns exec %1 nft flush chain inet miniupnpd miniupnpd")
                  .arg(router)));
  QVERIFY(ask("public", "dial " + outside).startsWith("error"));
  routers_[site] = start_miniupnpd(router, way == "UPnP", way == "NAT-PMP");
  QVERIFY2(node.line("! lost ").has_value(), node.seen().right(900).constData());
  const auto again = node.line("! mapped ", 60'000);
  QVERIFY2(again.has_value(), node.seen().right(900).constData());
  QCOMPARE(ask("public", "dial " + QString(*again).section(' ', 0, 0)), site);
}

void TestNatLab::a_changed_address_is_told() {
  LabProcess& node = *nodes_["upnp"];
  QVERIFY(
      run("ip -n r-upnp addr add 11.22.33.31/24 dev wan; ip -n r-upnp addr del 11.22.33.11/24 dev wan; "
          "ip -n r-upnp addr add 11.22.33.31/24 dev wan || true"));
  const auto changed = node.line("! changed ", 60'000);
  QVERIFY2(changed.has_value(), node.seen().right(900).constData());
  const QString outside = QString(*changed).section(' ', 0, 0);
  QCOMPARE(outside.section(':', 0, 0), QString("11.22.33.31"));
  QTRY_COMPARE_WITH_TIMEOUT(ask("public", "dial " + outside), QString("upnp"), 60'000);
}

int main(int argc, char** argv) {
  const QString why_not = test::enter_net_lab(argv, {"nft", "miniupnpd", "turnserver", "sysctl"});
  const QCoreApplication application(argc, argv);
  TestNatLab lab;
  lab.why_not = why_not;
  return QTest::qExec(&lab, argc, argv);
}
#include "test_nat_lab.moc"
