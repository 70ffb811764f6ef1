// Seven homes around one piece of internet, in network namespaces with real routers (nftables, miniupnpd) and
// a real STUN server (coturn): each finds out how it can be reached, and all pairs connect the way they
// should.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QtTest>

#include "core/nat/reachability.h"
#include "tests/support/nat_homes.h"

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
  void start_services();
  QString ask(const QString& site, const QString& command, int timeout_ms = 60'000);
  QString outside_of(const QString& site) const { return advertised_.value(site); }

  const QString peer_ = QCoreApplication::applicationDirPath() + "/nat_lab_peer";
  test::NatHomes homes_;
  std::unique_ptr<LabProcess> services_, coturn_;
  QMap<QString, std::shared_ptr<LabProcess>> nodes_;
  QMap<QString, QString> reach_, advertised_;
};

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
  QVERIFY(homes_.build());

  coturn_ = std::make_unique<LabProcess>(
      "pub", "turnserver",
      QStringList{"-n", "--lt-cred-mech", "--user=nsd:secret", "--realm=nsd.test", "--relay-ip=11.22.33.1",
                  "--listening-ip=11.22.33.1", "--listening-ip=11.22.33.9", "--listening-port=3478",
                  "--no-tls", "--no-dtls", "--no-cli", "--log-file=stdout", "--simple-log",
                  "--userdb=" + homes_.folder.filePath("db"),
                  "--pidfile=" + homes_.folder.filePath("coturn.pid")});
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
  const QString relayed = ask("symmetric", "turn 11.22.40.10");
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
                  .arg(site, qEnvironmentVariable("NS_BIN_DIR"), homes_.folder.filePath("data"), more),
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

  homes_.routers[site]->terminate();
  const QString router = "r-" + site;
  QVERIFY(test::NatHomes::run(QString("ip netns exec %1 nft flush chain inet miniupnpd prerouting_miniupnpd\n"
                                      "ip netns exec %1 nft flush chain inet miniupnpd miniupnpd")
                                  .arg(router)));
  QVERIFY(ask("public", "dial " + outside).startsWith("error"));
  QVERIFY2(node.line("! lost ", 60'000).has_value(), node.seen().right(900).constData());
  homes_.routers[site] = homes_.start_miniupnpd(router, way == "UPnP", way == "NAT-PMP");
  const auto again = node.line("! mapped ", 60'000);
  QVERIFY2(again.has_value(), node.seen().right(900).constData());
  QCOMPARE(ask("public", "dial " + QString(*again).section(' ', 0, 0)), site);
}

void TestNatLab::a_changed_address_is_told() {
  LabProcess& node = *nodes_["upnp"];
  // Never without an address: who looks in that moment would see the line down, and up again.
  QVERIFY(test::NatHomes::run(
      "ip netns exec r-upnp sysctl -qw net.ipv4.conf.wan.promote_secondaries=1; "
      "ip -n r-upnp addr add 11.22.41.31/16 dev wan; ip -n r-upnp addr del 11.22.41.11/16 dev wan"));
  const auto changed = node.line("! changed ", 60'000);
  QVERIFY2(changed.has_value(), node.seen().right(900).constData());
  const QString outside = QString(*changed).section(' ', 0, 0);
  QCOMPARE(outside.section(':', 0, 0), QString("11.22.41.31"));
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
