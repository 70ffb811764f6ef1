#include "app/gui/desktop_tray_host.h"

#include <QGuiApplication>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#if defined(Q_OS_UNIX) && !defined(Q_OS_DARWIN)
#include <xcb/xcb.h>

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusServiceWatcher>
#include <QDBusVariant>
#else
#include <QSystemTrayIcon>
#endif

namespace neuroshard::gui {

using ui::TrayProtocol;

namespace {

// A selection's owner and a native tray send no signal when they change.
constexpr std::chrono::seconds look_period{2};

}  // namespace

DesktopTrayHost::~DesktopTrayHost() = default;

bool DesktopTrayHost::speaks(TrayProtocol protocol) const {
  switch (protocol) {
    case TrayProtocol::None: return false;
    case TrayProtocol::Notifier: return notifier_;
    case TrayProtocol::Embed: return embed_;
    case TrayProtocol::Native: return native_;
  }
  return false;
}

void DesktopTrayHost::take(bool* what, bool now) {
  const bool first = !std::exchange(known_, true);
  if (std::exchange(*what, now) != now || first) Q_EMIT changed();
}

#if defined(Q_OS_UNIX) && !defined(Q_OS_DARWIN)
namespace {

const char* const watcher_service = "org.kde.StatusNotifierWatcher";
const char* const watcher_path = "/StatusNotifierWatcher";
constexpr int answer_ms = 5000;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

QDBusMessage host_question() {
  QDBusMessage question = QDBusMessage::createMethodCall(watcher_service, watcher_path,
                                                         QStringLiteral("org.freedesktop.DBus.Properties"),
                                                         QStringLiteral("Get"));
  question.setArguments(
      {QString::fromLatin1(watcher_service), QStringLiteral("IsStatusNotifierHostRegistered")});
  question.setAutoStartService(false);  // asking must not start anything
  return question;
}

bool says_yes(const QDBusMessage& answer) {
  return answer.type() == QDBusMessage::ReplyMessage && !answer.arguments().isEmpty() &&
         answer.arguments().constFirst().value<QDBusVariant>().variant().toBool();
}

// The owner of the selection _NET_SYSTEM_TRAY_Sn, n = the screen of this session.
bool embed_host_there() {
  auto* x11 = qGuiApp->nativeInterface<QNativeInterface::QX11Application>();
  if (x11 == nullptr || x11->connection() == nullptr) return false;
  char* host = nullptr;
  int display = 0, screen = 0;
  if (xcb_parse_display(nullptr, &host, &display, &screen) == 0) return false;
  std::free(host);
  const std::string name = "_NET_SYSTEM_TRAY_S" + std::to_string(screen);
  xcb_connection_t* connection = x11->connection();
  const std::unique_ptr<xcb_intern_atom_reply_t, Free> atom(xcb_intern_atom_reply(
      connection, xcb_intern_atom(connection, 1, static_cast<std::uint16_t>(name.size()), name.data()),
      nullptr));
  if (!atom || atom->atom == XCB_ATOM_NONE) return false;  // nobody ever named it
  const std::unique_ptr<xcb_get_selection_owner_reply_t, Free> owner(
      xcb_get_selection_owner_reply(connection, xcb_get_selection_owner(connection, atom->atom), nullptr));
  return owner && owner->owner != XCB_WINDOW_NONE;
}

}  // namespace

DesktopTrayHost::DesktopTrayHost(QObject* parent) : TrayHost(parent) {
  embed_ = embed_host_there();
  watch_bus();
  if (QGuiApplication::platformName() != QStringLiteral("xcb")) return;
  connect(&timer_, &QTimer::timeout, this, &DesktopTrayHost::look);
  timer_.start(look_period);
}

void DesktopTrayHost::watch_bus() {
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (!bus.isConnected()) {
    known_ = true;
    return;
  }
  auto* watcher =
      new QDBusServiceWatcher(watcher_service, bus, QDBusServiceWatcher::WatchForOwnerChange, this);
  connect(watcher, &QDBusServiceWatcher::serviceOwnerChanged, this, &DesktopTrayHost::ask_bus);
  // A watcher may be there before any host is.
  for (const char* signal : {"StatusNotifierHostRegistered", "StatusNotifierHostUnregistered"})
    bus.connect(watcher_service, watcher_path, watcher_service, signal, this, SLOT(ask_bus()));
  ask_bus();
}

void DesktopTrayHost::ask_bus() {
  auto* question =
      new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(host_question(), answer_ms), this);
  asked_ = question;
  connect(question, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* answered) {
    answered->deleteLater();
    if (answered == asked_) take(&notifier_, says_yes(answered->reply()));
  });
}

void DesktopTrayHost::look() {
  if (known_) take(&embed_, embed_host_there());
}

#else

DesktopTrayHost::DesktopTrayHost(QObject* parent) : TrayHost(parent) {
  look();
  connect(&timer_, &QTimer::timeout, this, &DesktopTrayHost::look);
  timer_.start(look_period);
}

void DesktopTrayHost::watch_bus() {}
void DesktopTrayHost::ask_bus() {}

void DesktopTrayHost::look() {
  take(&native_, QSystemTrayIcon::isSystemTrayAvailable());
}

#endif

}  // namespace neuroshard::gui
