#include "app/gui/user_config.h"

#include <QStandardPaths>

namespace neuroshard::gui {
namespace {

// As the file has them, in the order of ReleaseFound.
constexpr const char* found_words[] = {"nothing", "newest", "newer", "refused", "not_reached"};

std::optional<WallTime> time_of(const QVariant& value) {
  const qlonglong ms = value.toLongLong();
  return ms > 0 ? std::optional(WallTime(std::chrono::milliseconds(ms))) : std::nullopt;
}

qlonglong number_of(const std::optional<WallTime>& time) {
  return time ? to_unix_ms(*time) : 0;
}

}  // namespace

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

void UserConfig::set_newest_run(const QString& version) {
  settings_.setValue("app/version", version);
  settings_.sync();
}

ReleaseMemory UserConfig::releases() const {
  ReleaseMemory memory{
      time_of(settings_.value("releases/looked")), time_of(settings_.value("releases/next")), {}, {}};
  const QString found = text("releases/found");
  for (std::size_t i = 0; i < std::size(found_words); ++i)
    if (found == QLatin1String(found_words[i])) memory.found = static_cast<ui::ReleaseFound>(i);
  memory.why = text("releases/why");
  return memory;
}

void UserConfig::set_releases(const ReleaseMemory& memory) {
  settings_.setValue("releases/looked", number_of(memory.looked));
  settings_.setValue("releases/next", number_of(memory.next));
  settings_.setValue("releases/found",
                     QString::fromLatin1(found_words[static_cast<std::size_t>(memory.found)]));
  settings_.setValue("releases/why", memory.why);
  settings_.sync();
}

}  // namespace neuroshard::gui
