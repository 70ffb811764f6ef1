// Seven homes around one piece of internet, in network namespaces with real routers (nftables, miniupnpd):
// what the laboratories of reachability stand on. Header only; needs Qt.
//   pub         the internet: 11.22.33.1 and .9          public     a machine in it, 11.22.40.10
//   upnp natpmp plain symmetric blocked plain2           behind r-NAME, 11.22.41.11 … 44.14, 46.16, 47.17
//   double      behind r-double behind the carrier's r-carrier, 11.22.45.15
// No two homes are in one /24, as those of strangers: what is bounded for each part of the network counts
// them apart.
#pragma once

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QTemporaryDir>
#include <QtDebug>

#include "tests/support/net_lab.h"
#include "tests/support/process.h"

namespace neuroshard::test {

// The chains that miniupnpd fills, a NAT and a firewall that drops what nobody asked for.
inline const char* const router_rules = R"(
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

inline const char* const miniupnpd_settings = R"(ext_ifname=wan
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

struct NatHomes {
  QTemporaryDir folder{"/run/nat-lab-XXXXXX"};         // on a file system of the laboratory: it goes with it
  QMap<QString, std::shared_ptr<LabProcess>> routers;  // their miniupnpd

  static bool run(const QString& script) {
    const auto result = shell(script);
    if (result.exit_code != 0) qWarning("%s\n%s", qPrintable(script), result.text.constData());
    return result.exit_code == 0;
  }

  // The answer of a home's node to a command, with --json; its data directory is folder/home.
  QJsonObject ask(const QString& home, const QString& command) const {
    const ShellResult result = shell(QString("ip netns exec %1 %2 %3 --json --data-dir %4")
                                         .arg(home, node_program(), command, folder.filePath(home)));
    for (const QByteArray& line : result.text.split('\n')) {
      const QJsonObject object = QJsonDocument::fromJson(line).object();
      if (!object.isEmpty()) return object;
    }
    return {};
  }
  QByteArray log_of(const QString& home) const {
    QFile file(folder.filePath(home) + "/logs/neuroshardd.log");
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }

  // All of them; false when the system does not play along.
  bool build() {
    if (!(run("ip netns add pub; ip -n pub link set lo up\n"
              "ip -n pub link add br0 type bridge; ip -n pub link set br0 up\n"
              "ip -n pub addr add 11.22.33.1/16 dev br0; ip -n pub addr add 11.22.33.9/16 dev br0\n"
              "ip netns add public; ip -n public link set lo up\n"
              "ip link add pubh netns pub type veth peer name eth0 netns public\n"
              "ip -n pub link set pubh master br0 up\n"
              "ip -n public addr add 11.22.40.10/16 dev eth0; ip -n public link set eth0 up\n")))
      return false;
    const QString all = "iifname \"lan\" accept", plain = "masquerade", symmetric = "masquerade fully-random";
    if (!(make_router("r-upnp", "pub", "11.22.41.11/16", {}, "10.1.0.1/24", plain, all))) return false;
    if (!(make_router("r-natpmp", "pub", "11.22.42.12/16", {}, "10.2.0.1/24", plain, all))) return false;
    if (!(make_router("r-plain", "pub", "11.22.43.13/16", {}, "10.3.0.1/24", plain, all))) return false;
    if (!(make_router("r-symmetric", "pub", "11.22.44.14/16", {}, "10.4.0.1/24", symmetric, all)))
      return false;
    if (!(make_router("r-carrier", "pub", "11.22.45.15/16", {}, "100.64.5.1/24", symmetric, all)))
      return false;
    if (!(make_router("r-blocked", "pub", "11.22.46.16/16", {}, "10.6.0.1/24", symmetric,
                      "iifname \"lan\" meta l4proto tcp accept")))
      return false;
    if (!(make_router("r-plain2", "pub", "11.22.47.17/16", {}, "10.7.0.1/24", plain, all))) return false;
    // The inner router of the double NAT stands on the carrier's segment.
    if (!(run(
            "ip -n r-carrier link set lan down; ip -n r-carrier link set lan name br0; ip -n r-carrier link "
            "set br0 up\n"
            "ip netns exec r-carrier nft add rule inet filter forward iifname br0 accept")))
      return false;
    if (!(make_router("r-double", "r-carrier", "100.64.5.2/24", "100.64.5.1", "10.5.0.1/24", plain, all)))
      return false;
    const QMap<QString, QString> networks{
        {"upnp", "10.1.0"},   {"natpmp", "10.2.0"},  {"plain", "10.3.0"}, {"symmetric", "10.4.0"},
        {"double", "10.5.0"}, {"blocked", "10.6.0"}, {"plain2", "10.7.0"}};
    for (auto it = networks.begin(); it != networks.end(); ++it)
      if (!(make_host(it.key(), "r-" + it.key(), it.value() + ".2/24", it.value() + ".1"))) return false;
    routers["upnp"] = start_miniupnpd("r-upnp", true, false);
    routers["natpmp"] = start_miniupnpd("r-natpmp", false, true);
    routers["double"] = start_miniupnpd("r-double", true, true);
    return true;
  }

  // A router `ns` whose outside interface is on `segment` (a namespace with a bridge br0).
  bool make_router(const QString& ns, const QString& segment, const QString& wan,
                   const QString& default_gateway, const QString& lan, const QString& masquerade,
                   const QString& from_lan) {
    const QString port = ns.left(10) + "w";
    QString rules = router_rules;
    rules.replace("MASQUERADE", masquerade).replace("FROM_LAN", from_lan);
    QFile file(folder.filePath(ns + ".nft"));
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

  bool make_host(const QString& ns, const QString& router, const QString& address, const QString& gateway) {
    return run(QString("ip netns add %1; ip -n %1 link set lo up\n"
                       "ip link add l%3 netns %2 type veth peer name eth0 netns %1\n"
                       "ip -n %2 link set l%3 master lan up\n"
                       "ip -n %1 addr add %4 dev eth0; ip -n %1 link set eth0 up\n"
                       "ip -n %1 route add default via %5\n")
                   .arg(ns, router, ns.left(10), address, gateway));
  }

  std::unique_ptr<LabProcess> start_miniupnpd(const QString& router, bool upnp, bool nat_pmp) {
    QString settings = miniupnpd_settings;
    settings.replace("UPNP\n", upnp ? "yes\n" : "no\n").replace("NATPMP\n", nat_pmp ? "yes\n" : "no\n");
    settings.replace("000N", QString("%1").arg(qHash(router) % 10000, 4, 10, QChar('0')));
    QFile file(folder.filePath(router + ".conf"));
    if (!file.open(QIODevice::WriteOnly) || file.write(settings.toUtf8()) < 0) return nullptr;
    file.close();
    return std::make_unique<LabProcess>(
        router, "miniupnpd",
        QStringList{"-d", "-f", file.fileName(), "-P", folder.filePath(router + ".pid")});
  }
};

}  // namespace neuroshard::test
