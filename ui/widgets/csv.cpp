#include "ui/widgets/csv.h"

#include <QAbstractItemModel>
#include <QCoreApplication>
#include <QFileDialog>
#include <QMessageBox>
#include <QSaveFile>
#include <QStandardPaths>
#include <cmath>

namespace neuroshard::ui {
namespace {
class Words {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::Export)
};
}  // namespace

QString csv_field(const QString& text) {
  QString field = text;
  // Spreadsheets run what begins so.
  if (!field.isEmpty() && QStringLiteral("=+-@\t\r").contains(field[0])) {
    bool number = false;
    field.toDouble(&number);
    if (!number) field.prepend(QLatin1Char('\''));
  }
  if (field.contains(QLatin1Char(',')) || field.contains(QLatin1Char('"')) ||
      field.contains(QLatin1Char('\n')) || field.contains(QLatin1Char('\r'))) {
    field.replace(QLatin1Char('"'), QStringLiteral("\"\""));
    field = QLatin1Char('"') + field + QLatin1Char('"');
  }
  return field;
}

QString csv_number(double value) {
  return std::isfinite(value) ? QString::number(value, 'g', QLocale::FloatingPointShortest) : QString();
}

QString csv_line(const QStringList& fields) {
  QStringList written;
  for (const QString& field : fields) written << csv_field(field);
  return written.join(QLatin1Char(',')) + QStringLiteral("\r\n");
}

QString csv_of(const QAbstractItemModel& model) {
  QString text;
  QStringList line;
  for (int column = 0; column < model.columnCount(); ++column)
    line << model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  text += csv_line(line);
  for (int row = 0; row < model.rowCount(); ++row) {
    line.clear();
    for (int column = 0; column < model.columnCount(); ++column)
      line << model.index(row, column).data().toString();
    text += csv_line(line);
  }
  return text;
}

QString choose_file_to_save(QWidget* parent, const QString& suggested_name, const QString& filter) {
  const QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
  return QFileDialog::getSaveFileName(parent, Words::tr("Export"), folder + QLatin1Char('/') + suggested_name,
                                      filter);
}

bool save_bytes(QWidget* parent, const QString& path, const QByteArray& bytes) {
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit()) return true;
  QMessageBox::warning(
      parent, Words::tr("Export"),
      Words::tr("The file could not be written: %1. Choose another folder or free some space.")
          .arg(file.errorString()));
  return false;
}

bool save_text_as(QWidget* parent, const QString& suggested_name, const QString& filter,
                  const QByteArray& bytes) {
  const QString path = choose_file_to_save(parent, suggested_name, filter);
  return !path.isEmpty() && save_bytes(parent, path, bytes);
}

}  // namespace neuroshard::ui
