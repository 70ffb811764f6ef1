// Nodes of a network that can be cut in two: each has a network namespace of its own with one port, and the port is on
// one of two bridges. No packet passes between the bridges. Inside of a laboratory only (net_lab.h). Header only;
// needs Qt.
#pragma once

#include <QString>
#include <QStringList>

#include "tests/support/net_lab.h"

namespace neuroshard::test::bridged_homes {

// Of the laboratory itself, on the bridge of the nodes that are not cut off.
inline constexpr const char* host_address = "10.77.0.1";

// Names are single small letters.
inline QString address_of(const QString& name) {
  return QString("10.77.%1.2").arg(name[0].unicode() - 'a' + 1);
}
inline QString name_space_of(const QString& name) {
  return "n-" + name;
}
inline QString port_of(const QString& name) {
  return "p-" + name;
}

// Empty: the nodes' namespaces are there, and nobody is cut off. Else what went wrong.
inline QByteArray make(const QStringList& names) {
  QString script =
      "ip link add br0 type bridge; ip link set br0 up; ip addr add 10.77.0.1/16 dev br0\n"
      "ip link add br1 type bridge; ip link set br1 up\n";
  for (const QString& name : names)
    script += QString(
                  "ip netns add %1; ip -n %1 link set lo up\n"
                  "ip link add %2 type veth peer name eth0 netns %1\n"
                  "ip link set %2 master br0 up\n"
                  "ip -n %1 addr add %3/16 dev eth0; ip -n %1 link set eth0 up\n")
                  .arg(name_space_of(name), port_of(name), address_of(name));
  const ShellResult made = shell(script);
  return made.exit_code == 0 ? QByteArray() : made.text + " ";
}

inline bool move_ports(const QStringList& names, const QString& bridge) {
  QString script;
  for (const QString& name : names) script += "ip link set " + port_of(name) + " master " + bridge + "\n";
  return shell(script).exit_code == 0;
}
// These nodes reach each other and nobody else.
inline bool cut_off(const QStringList& names) {
  return move_ports(names, "br1");
}
inline bool take_back(const QStringList& names) {
  return move_ports(names, "br0");
}

}  // namespace neuroshard::test::bridged_homes
