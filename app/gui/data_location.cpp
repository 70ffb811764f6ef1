#include "app/gui/data_location.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>

namespace neuroshard::gui {
namespace {

constexpr qint64 uuid_characters = 36;

QString tr(const char* text) {
  return QCoreApplication::translate("DataLocation", text);
}

bool is_data_directory(const QString& path) {
  return QFile::exists(QDir(path).filePath("FORMAT"));
}

}  // namespace

QString instance_of(const QString& data_directory) {
  QFile file(QDir(data_directory).filePath("instance"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return QString::fromLatin1(file.read(uuid_characters));
}

DataLocation look_for_data(const DataChoice& choice) {
  if (choice.path.isEmpty()) {
    // A directory that the command line made is used as it is.
    if (is_data_directory(choice.fallback)) return {DataState::Ready, choice.fallback, {}};
    return {DataState::FirstRun, choice.fallback, {}};
  }
  const QFileInfo folder(choice.path);
  if (!folder.isDir()) return {DataState::Missing, choice.path, tr("The folder does not exist.")};
  // Chosen, and the core has not been there yet.
  if (choice.instance.isEmpty()) return {DataState::Ready, choice.path, {}};
  if (!is_data_directory(choice.path))
    return {DataState::Missing, choice.path, tr("The folder exists but holds no NeuroShard data.")};
  const QString found = instance_of(choice.path);
  if (found.isEmpty()) return {DataState::Missing, choice.path, tr("The folder can't be read.")};
  if (found != choice.instance)
    return {DataState::Missing, choice.path, tr("The folder holds the data of another NeuroShard node.")};
  return {DataState::Ready, choice.path, {}};
}

}  // namespace neuroshard::gui
