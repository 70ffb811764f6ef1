// Sensors over D-Bus: desktops and NetworkManager. Calls block for a moment and have a limit, so they run on
// the sensors' thread.
#include <QDBusConnection>
#include <QDBusInterface>
#include <QDBusMessage>
#include <QDBusReply>

#include "app/gui/session_sensors.h"

namespace neuroshard::gui {
namespace {

constexpr int call_limit_ms = 1000;

QVariant call(const QDBusConnection& bus, const QString& service, const QString& path,
              const QString& interface, const QString& method, const QVariantList& arguments = {}) {
  if (!bus.isConnected()) return {};
  QDBusMessage message = QDBusMessage::createMethodCall(service, path, interface, method);
  message.setArguments(arguments);
  message.setAutoStartService(false);  // asking must not start anything
  const QDBusMessage reply = bus.call(message, QDBus::Block, call_limit_ms);
  if (reply.type() != QDBusMessage::ReplyMessage || reply.arguments().isEmpty()) return {};
  return reply.arguments().constFirst();
}

// Input on Wayland: GNOME's monitor, else the interface of KDE and others.
class DesktopSensor final : public SessionSensor {
 public:
  void read(node::SessionSensors* into) override {
    if (into->input_idle) return;
    const QDBusConnection bus = QDBusConnection::sessionBus();
    QVariant idle = call(bus, "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core",
                         "org.gnome.Mutter.IdleMonitor", "GetIdletime");
    if (!idle.isValid()) {
      idle = call(bus, "org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver",
                  "org.freedesktop.ScreenSaver", "GetSessionIdleTime");
    }
    bool number = false;
    const qulonglong milliseconds = idle.toULongLong(&number);
    if (number)
      into->input_idle =
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::milliseconds(milliseconds));
  }
};

// The values of NMMetered in NetworkManager's D-Bus interface.
enum Metered : uint { Unknown = 0, Yes = 1, No = 2, GuessYes = 3, GuessNo = 4 };

class MeteredSensor final : public SessionSensor {
 public:
  void read(node::SessionSensors* into) override {
    const QVariant answer = call(QDBusConnection::systemBus(), "org.freedesktop.NetworkManager",
                                 "/org/freedesktop/NetworkManager", "org.freedesktop.DBus.Properties", "Get",
                                 {QString("org.freedesktop.NetworkManager"), QString("Metered")});
    if (!answer.canConvert<QDBusVariant>()) return;
    const uint metered = answer.value<QDBusVariant>().variant().toUInt();
    if (metered == Yes || metered == GuessYes) into->metered = true;
    if (metered == No || metered == GuessNo) into->metered = false;
  }
};

}  // namespace

std::unique_ptr<SessionSensor> make_desktop_sensor() {
  return std::make_unique<DesktopSensor>();
}

std::unique_ptr<SessionSensor> make_metered_sensor() {
  return std::make_unique<MeteredSensor>();
}

}  // namespace neuroshard::gui
