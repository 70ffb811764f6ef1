#include "app/gui/install_kind.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>

namespace neuroshard::gui {

ui::InstallKind install_kind(const QString& program, const QString& package_list) {
  QFile list(package_list);
  if (list.open(QIODevice::ReadOnly | QIODevice::Text)) {
    while (!list.atEnd())
      if (QString::fromUtf8(list.readLine()).trimmed() == program) return ui::InstallKind::Package;
  }
  // bin/neuroshard in the folder of the archive, which begins as an AppImage does.
  const QDir above(QFileInfo(program).path() + QStringLiteral("/.."));
  return above.exists(QStringLiteral("AppRun")) ? ui::InstallKind::Portable : ui::InstallKind::Other;
}

QString lasting_program(const platform::Environment& environment, const QString& program) {
  const QString image = QString::fromStdString(environment("APPIMAGE"));
  const QString mounted = QString::fromStdString(environment("APPDIR"));
  if (!QDir::isAbsolutePath(image) || !QDir::isAbsolutePath(mounted)) return program;
  // All programs that an AppImage starts have its variables.
  const QString content = QFileInfo(mounted).canonicalFilePath();
  return !content.isEmpty() && program.startsWith(content + '/') ? image : program;
}

}  // namespace neuroshard::gui
