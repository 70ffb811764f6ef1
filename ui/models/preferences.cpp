#include "ui/models/preferences.h"

namespace neuroshard::ui {
namespace {

const QString theme_key = QStringLiteral("look/theme");
const QString language_key = QStringLiteral("look/language");
const QString close_key = QStringLiteral("desktop/close_to_tray");
const QString releases_key = QStringLiteral("releases/look");
const QString autostart_key = QStringLiteral("desktop/autostart");

QString notify_key(NotificationClass about) {
  switch (about) {
    case NotificationClass::Problem: return QStringLiteral("notify/problem");
    case NotificationClass::Pause: return QStringLiteral("notify/pause");
    case NotificationClass::Finished: break;
  }
  return QStringLiteral("notify/finished");
}

}  // namespace

Preferences::Preferences(const QString& file, QObject* parent)
    : QObject(parent), file_(file, QSettings::IniFormat) {}

ThemeChoice Preferences::theme() const {
  const QString word = file_.value(theme_key).toString();
  if (word == QStringLiteral("light")) return ThemeChoice::Light;
  if (word == QStringLiteral("dark")) return ThemeChoice::Dark;
  return ThemeChoice::System;
}

void Preferences::set_theme(ThemeChoice choice) {
  put(theme_key, choice == ThemeChoice::Light  ? QStringLiteral("light")
                 : choice == ThemeChoice::Dark ? QStringLiteral("dark")
                                               : QStringLiteral("system"));
}

QString Preferences::language() const {
  return file_.value(language_key).toString();
}
void Preferences::set_language(const QString& language) {
  put(language_key, language);
}
bool Preferences::close_to_tray() const {
  return file_.value(close_key, true).toBool();
}
void Preferences::set_close_to_tray(bool on) {
  put(close_key, on);
}
bool Preferences::autostart() const {
  return file_.value(autostart_key, false).toBool();
}
void Preferences::set_autostart(bool on) {
  put(autostart_key, on);
}
bool Preferences::look_for_releases() const {
  return file_.value(releases_key, false).toBool();
}
void Preferences::set_look_for_releases(bool on) {
  put(releases_key, on);
}
bool Preferences::notify(NotificationClass about) const {
  return file_.value(notify_key(about), about == NotificationClass::Problem).toBool();
}
void Preferences::set_notify(NotificationClass about, bool on) {
  put(notify_key(about), on);
}

void Preferences::put(const QString& key, const QVariant& value) {
  if (file_.value(key) == value) return;
  file_.setValue(key, value);
  Q_EMIT changed();
}

}  // namespace neuroshard::ui
