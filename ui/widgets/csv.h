// CSV as RFC 4180 has it: comma, CRLF, quotes doubled; numbers with a point, whatever the locale.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

class QAbstractItemModel;
class QWidget;

namespace neuroshard::ui {

QString csv_field(const QString& text);
QString csv_number(double value);  // shortest that reads back the same; not finite: empty
QString csv_line(const QStringList& fields);
// Headings and all rows of a table, as it shows them. A field that a spreadsheet would take for a formula
// gets a ' before it.
QString csv_of(const QAbstractItemModel& model);

// Asks for a file name, with its folder; empty = none was chosen.
QString choose_file_to_save(QWidget* parent, const QString& suggested_name, const QString& filter);
// Replaces the file as a whole or not at all; a message box shows errors.
bool save_bytes(QWidget* parent, const QString& path, const QByteArray& bytes);
// Asks for a file name and writes; a message box shows errors. Returns false when nothing was written.
bool save_text_as(QWidget* parent, const QString& suggested_name, const QString& filter,
                  const QByteArray& bytes);

}  // namespace neuroshard::ui
