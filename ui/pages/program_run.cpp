#include "ui/pages/program_run.h"

#include <QJsonDocument>

#include "ui/text/program_error.h"

namespace neuroshard::ui {

ProgramRun::ProgramRun(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
  connect(&process_, &QProcess::finished, this, &ProgramRun::ended);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) Q_EMIT failed(process_.errorString());
  });
}

ProgramRun::~ProgramRun() {
  process_.disconnect(this);
  if (running()) process_.kill();
}

void ProgramRun::start(const QStringList& arguments, const QByteArray& input) {
  if (running()) return;
  process_.start(program_, arguments);
  if (!input.isEmpty()) process_.write(input);
  process_.closeWriteChannel();
}

void ProgramRun::ended(int code, QProcess::ExitStatus status) {
  const QByteArray output = process_.readAllStandardOutput(), errors = process_.readAllStandardError();
  const QByteArray last = output.trimmed().split('\n').last();
  const QJsonDocument said = QJsonDocument::fromJson(last);
  if (status == QProcess::NormalExit && code == 0 && said.isObject()) {
    Q_EMIT done(said.object());
    return;
  }
  const QString why = status == QProcess::NormalExit ? error_of_program(errors) : QString();
  Q_EMIT failed(why.isEmpty() ? tr("neuroshardd gave no result (exit code %1).").arg(code) : why);
}

}  // namespace neuroshard::ui
