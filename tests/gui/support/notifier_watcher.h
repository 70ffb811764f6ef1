// A session bus of a test's own, and on it what a desktop with the newer tray protocol has: the watcher, with
// or without a host. https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/
#pragma once

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusVariant>
#include <QDBusVirtualObject>
#include <QStringList>
#include <QVariantMap>
#include <memory>

#include "tests/gui/support/desktop_fixture.h"

namespace neuroshard::test {

class NotifierWatcher final : public QDBusVirtualObject {
 public:
  static constexpr const char* service = "org.kde.StatusNotifierWatcher";
  static constexpr const char* path = "/StatusNotifierWatcher";

  explicit NotifierWatcher(QDBusConnection bus) : bus_(std::move(bus)) {}
  ~NotifierWatcher() override { go(); }

  bool come(bool with_host) {
    host_ = with_host;
    items_.clear();
    return bus_.registerVirtualObject(path, this) && bus_.registerService(service);
  }
  // As when the panel ends.
  void go() {
    bus_.unregisterService(service);
    bus_.unregisterObject(path);
  }
  void set_host(bool there) {
    host_ = there;
    bus_.send(QDBusMessage::createSignal(
        path, service, there ? "StatusNotifierHostRegistered" : "StatusNotifierHostUnregistered"));
  }
  // The services of the icons that were registered since it came.
  QStringList items() const { return items_; }

  QString introspect(const QString&) const override {
    return QStringLiteral(
        "<interface name=\"org.kde.StatusNotifierWatcher\">"
        "<method name=\"RegisterStatusNotifierItem\"><arg type=\"s\" direction=\"in\"/></method>"
        "<property name=\"IsStatusNotifierHostRegistered\" type=\"b\" access=\"read\"/>"
        "<property name=\"ProtocolVersion\" type=\"i\" access=\"read\"/>"
        "<property name=\"RegisteredStatusNotifierItems\" type=\"as\" access=\"read\"/>"
        "<signal name=\"StatusNotifierHostRegistered\"/><signal name=\"StatusNotifierHostUnregistered\"/>"
        "</interface>");
  }
  bool handleMessage(const QDBusMessage& message, const QDBusConnection& from) override {
    const QVariantMap properties{{"IsStatusNotifierHostRegistered", host_},
                                 {"ProtocolVersion", 0},
                                 {"RegisteredStatusNotifierItems", items_}};
    const QString member = message.member();
    if (member == "RegisterStatusNotifierItem") {
      items_ << message.arguments().value(0).toString();
      return from.send(message.createReply());
    }
    if (member == "GetAll") return from.send(message.createReply(QVariant(properties)));
    if (member != "Get" || !properties.contains(message.arguments().value(1).toString())) return false;
    const QVariant value = properties[message.arguments()[1].toString()];
    return from.send(message.createReply(QVariant::fromValue(QDBusVariant(value))));
  }

 private:
  QDBusConnection bus_;
  bool host_ = false;
  QStringList items_;
};

class SessionBus {
 public:
  explicit SessionBus(const QProcessEnvironment& environment)
      : daemon_("dbus-daemon", {"--session", "--nofork", "--print-address"}, environment) {
    if (const auto said = daemon_.next_line()) address_ = QString::fromLatin1(*said);
  }
  ~SessionBus() {
    if (!address_.isEmpty()) QDBusConnection::disconnectFromBus(address_);
  }
  bool running() const { return !address_.isEmpty() && connection().isConnected(); }
  QString address() const { return address_; }
  // One connection of this program, however often it is asked for.
  QDBusConnection connection() const { return QDBusConnection::connectToBus(address_, address_); }

 private:
  Helper daemon_;
  QString address_;
};

}  // namespace neuroshard::test
