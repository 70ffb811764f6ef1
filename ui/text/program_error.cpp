#include "ui/text/program_error.h"

#include <QJsonDocument>
#include <QJsonObject>

namespace neuroshard::ui {

QString error_of_program(const QByteArray& errors) {
  const QJsonObject error = QJsonDocument::fromJson(errors)[QLatin1String("error")].toObject();
  const QString message = error["message"].toString(), file = error["context"].toString();
  if (message.isEmpty()) return QString::fromUtf8(errors).trimmed();
  return file.isEmpty() || message.contains(file) ? message : QStringLiteral("%1: %2").arg(file, message);
}

}  // namespace neuroshard::ui
