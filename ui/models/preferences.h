// Preferences of this app: theme, language, tray, notifications. Kept in one small file of the user; the core
// does not read it.
#pragma once

#include <QObject>
#include <QSettings>
#include <QString>

#include "ui/theme/theme.h"

namespace neuroshard::ui {

// The classes of notifications. Only problems, unless the user asks for more.
enum class NotificationClass { Problem, Pause, Finished };

// Threads: ui.
class Preferences final : public QObject {
  Q_OBJECT
 public:
  // `file` is an INI file; it need not exist.
  explicit Preferences(const QString& file, QObject* parent = nullptr);

  ThemeChoice theme() const;
  void set_theme(ThemeChoice choice);
  // "en", "de" …; empty = as the desktop has it. Takes effect at the next start of the app.
  QString language() const;
  void set_language(const QString& language);
  // Closing the window leaves the app in the tray, where there is one.
  bool close_to_tray() const;
  void set_close_to_tray(bool on);
  // Starts with the session, in the tray.
  bool autostart() const;
  void set_autostart(bool on);
  // The owner allowed looking for new releases. Off unless they did.
  bool look_for_releases() const;
  void set_look_for_releases(bool on);
  bool notify(NotificationClass about) const;
  void set_notify(NotificationClass about, bool on);

 Q_SIGNALS:
  void changed();

 private:
  void put(const QString& key, const QVariant& value);

  mutable QSettings file_;
};

}  // namespace neuroshard::ui
