// Settings of this user, outside a data directory: where the data is, and place and size of the window. Kept
// in $XDG_CONFIG_HOME/neuroshard/app.ini (of the platform's kind elsewhere), written atomically. Threads: ui.
#pragma once

#include <QByteArray>
#include <QSettings>
#include <QString>
#include <cstdint>
#include <optional>

#include "core/base/clock.h"
#include "ui/text/release_text.h"

namespace neuroshard::gui {

// Of the last look for releases.
struct ReleaseMemory {
  std::optional<WallTime> looked, next;
  ui::ReleaseFound found = ui::ReleaseFound::Nothing;
  QString why;
};

class UserConfig {
 public:
  // The user's own file.
  static QString default_path();
  explicit UserConfig(const QString& path);

  QString path() const { return settings_.fileName(); }

  // The data directory that was chosen; empty = the wizard has not been through.
  QString data_directory() const { return text("data/directory"); }
  // UUID of that directory; empty until the core has reported it. Together with the path it distinguishes a
  // missing disk from a first run.
  QString instance() const { return text("data/instance"); }
  void set_data_directory(const QString& path, const QString& instance);
  // A folder of text that the core reads at its start, beside what it has.
  QString text_folder() const { return text("data/text_folder"); }
  void set_text_folder(const QString& path) { settings_.setValue("data/text_folder", path); }

  // The core that this app started last: so that a restarted app knows its own.
  std::int64_t started_pid() const { return settings_.value("core/pid").toLongLong(); }
  std::uint64_t started_at() const { return settings_.value("core/start").toULongLong(); }
  void set_started(std::int64_t pid, std::uint64_t start);

  QByteArray geometry() const { return settings_.value("window/geometry").toByteArray(); }
  QByteArray window_state() const { return settings_.value("window/state").toByteArray(); }
  QString page() const { return text("window/page"); }
  void set_window(const QByteArray& geometry, const QByteArray& state, const QString& page);

  // Whether the user was notified once that the app keeps running in the tray.
  bool told_tray() const { return settings_.value("window/told_tray", false).toBool(); }
  void set_told_tray() { settings_.setValue("window/told_tray", true); }

  // The newest version of the app that has run and has shown what is new in it; empty: none has.
  QString newest_run() const { return text("app/version"); }
  void set_newest_run(const QString& version);

  ReleaseMemory releases() const;
  void set_releases(const ReleaseMemory& memory);
  // The newest version whose signature held; empty: none was seen.
  QString newest_release() const { return text("releases/newest"); }
  void set_newest_release(const QString& version) { settings_.setValue("releases/newest", version); }
  // The version whose notice the user has put away.
  QString put_away_release() const { return text("releases/put_away"); }
  void set_put_away_release(const QString& version) { settings_.setValue("releases/put_away", version); }

  void sync() { settings_.sync(); }

 private:
  QString text(const char* key) const { return settings_.value(key).toString(); }
  QSettings settings_;
};

}  // namespace neuroshard::gui
