#include "app/gui/autostart.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>
#include <QStandardPaths>

namespace neuroshard::gui {
namespace {

// As the Desktop Entry Specification wants an argument of Exec: quoted, and its reserved characters escaped
// twice.
QString quote(const QString& argument) {
  QString text;
  for (const QChar c : argument) {
    if (c == '"' || c == '`' || c == '$') text += "\\\\";
    if (c == '\\') text += "\\\\\\";
    if (c == '%') text += '%';
    text += c;
  }
  return '"' + text + '"';
}

// The program of an entry that quote() wrote; empty: another hand wrote it.
QString program_of(const QByteArray& entry) {
  const QString begins = QStringLiteral("\nExec=\"");
  const QString all = QString::fromUtf8(entry);
  const qsizetype at = all.indexOf(begins);
  if (at < 0) return {};
  QString line = all.mid(at + begins.size()).section('\n', 0, 0);
  line.replace(QStringLiteral("\\\\"), QStringLiteral("\\"));
  QString program;
  for (qsizetype i = 0; i < line.size() && line[i] != '"'; ++i) {
    if ((line[i] == '\\' || line[i] == '%') && i + 1 < line.size()) ++i;
    program += line[i];
  }
  return program;
}

}  // namespace

Autostart::Autostart(QString folder, QString program)
    : folder_(std::move(folder)), program_(std::move(program)) {}

QString Autostart::default_folder() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) + "/autostart";
}

QString Autostart::entry() const {
  return QString(
             "[Desktop Entry]\n"
             "Type=Application\n"
             "Name=NeuroShard\n"
             "Comment=Trains an open language model while you allow it\n"
             "Exec=%1 --minimized\n"
             "Icon=neuroshard\n"
             "Terminal=false\n"
             "X-GNOME-Autostart-enabled=true\n")
      .arg(quote(program_));
}

QByteArray Autostart::read() const {
  QFile file(path());
  return file.open(QIODevice::ReadOnly) ? file.read(64 * 1024) : QByteArray();
}

bool Autostart::enabled() const {
  const QByteArray text = read();
  if (text.isEmpty()) return false;
  // A desktop's own settings switch an entry off in these ways.
  return !text.contains("Hidden=true") && !text.contains("X-GNOME-Autostart-enabled=false");
}

Expected<void> Autostart::repair() const {
  const QString program = program_of(read());
  if (!enabled() || program == program_) return {};
  // A name without a folder is looked for elsewhere.
  if (!QDir::isAbsolutePath(program) || QFileInfo::exists(program)) return {};
  return set(true);
}

Expected<void> Autostart::set(bool on) const {
  if (!on) {
    if (QFile::exists(path()) && !QFile::remove(path()))
      return make_error(ErrorCode::Io, ("can't remove " + path()).toStdString());
    return {};
  }
  QSaveFile file(path());
  if (!QDir().mkpath(folder_) || !file.open(QIODevice::WriteOnly) || file.write(entry().toUtf8()) < 0 ||
      !file.commit()) {
    return make_error(ErrorCode::Io, ("can't write " + path() + ": " + file.errorString()).toStdString());
  }
  return {};
}

}  // namespace neuroshard::gui
