#include "app/gui/user_config.h"

#include <QStandardPaths>

namespace neuroshard::gui {

QString UserConfig::default_path() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) + "/neuroshard/app.ini";
}

UserConfig::UserConfig(const QString& path) : settings_(path, QSettings::IniFormat) {}

void UserConfig::set_data_directory(const QString& path, const QString& instance) {
  settings_.setValue("data/directory", path);
  settings_.setValue("data/instance", instance);
  settings_.sync();
}

void UserConfig::set_started(std::int64_t pid, std::uint64_t start) {
  settings_.setValue("core/pid", static_cast<qlonglong>(pid));
  settings_.setValue("core/start", static_cast<qulonglong>(start));
  settings_.sync();
}

void UserConfig::set_window(const QByteArray& geometry, const QByteArray& state, const QString& page) {
  settings_.setValue("window/geometry", geometry);
  settings_.setValue("window/state", state);
  settings_.setValue("window/page", page);
}

}  // namespace neuroshard::gui
