#include "ui/theme/scheme_source.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QGuiApplication>
#include <QPalette>

namespace neuroshard::ui {
namespace {

constexpr auto service = "org.freedesktop.portal.Desktop";
constexpr auto object = "/org/freedesktop/portal/desktop";
constexpr auto interface = "org.freedesktop.portal.Settings";
constexpr auto appearance = "org.freedesktop.appearance";
constexpr auto color_scheme = "color-scheme";  // 0 no preference, 1 dark, 2 light

Scheme of_palette() {
  const QPalette palette = QGuiApplication::palette();
  return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness()
             ? Scheme::Dark
             : Scheme::Light;
}

}  // namespace

DesktopSchemeSource::DesktopSchemeSource(QObject* parent) : SchemeSource(parent), palette_(of_palette()) {
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (!bus.isConnected()) return;
  bus.connect(service, object, interface, "SettingChanged", this,
              SLOT(setting_changed(QString, QString, QDBusVariant)));
  QDBusMessage question = QDBusMessage::createMethodCall(service, object, interface, "Read");
  question << QString(appearance) << QString(color_scheme);
  auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(question), this);
  connect(watcher, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* answered) {
    const QDBusPendingReply<QDBusVariant> reply = *answered;
    if (reply.isValid()) take(reply.value().variant());
    answered->deleteLater();
  });
}

void DesktopSchemeSource::setting_changed(const QString& group, const QString& key,
                                          const QDBusVariant& value) {
  if (group == appearance && key == color_scheme) take(value.variant());
}

void DesktopSchemeSource::take(const QVariant& value) {
  QVariant inner = value;
  // Portals before version 2 wrap the value twice.
  while (inner.canConvert<QDBusVariant>()) inner = inner.value<QDBusVariant>().variant();
  const Scheme before = scheme();
  switch (inner.toUInt()) {
    case 1: portal_ = Scheme::Dark; break;
    case 2: portal_ = Scheme::Light; break;
    default: portal_ = Scheme::Unknown;
  }
  if (scheme() != before) Q_EMIT changed();
}

}  // namespace neuroshard::ui
