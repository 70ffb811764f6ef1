#include "app/gui/process_launcher.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "core/platform/process/process_control.h"

namespace neuroshard::gui {
namespace {

constexpr qint64 shown_output = 4096;  // bytes: a few lines say what was wrong

Expected<void> make_private_file(const QString& path) {
  QFile file(path);
  if (!QDir().mkpath(QFileInfo(path).path()) || !file.open(QIODevice::WriteOnly | QIODevice::Truncate) ||
      !file.setPermissions(QFile::ReadOwner | QFile::WriteOwner)) {
    return make_error(ErrorCode::Io, ("can't write " + path + ": " + file.errorString()).toStdString());
  }
  return {};
}

}  // namespace

QString find_beside(const QString& application_folder, const QString& name) {
  const QFileInfo file(QDir(application_folder).filePath(name));
  return file.isFile() && file.isExecutable() ? file.absoluteFilePath() : QString();
}

ProcessLauncher::ProcessLauncher(QString program, QString output_file, QObject* parent)
    : CoreLauncher(parent), program_(std::move(program)), output_file_(std::move(output_file)) {
  qRegisterMetaType<CoreExit>();
}

ProcessLauncher::~ProcessLauncher() {
  if (process_ != nullptr) process_->disconnect(this);
}

Expected<void> ProcessLauncher::launch(const LaunchRequest& request) {
  if (process_ != nullptr) return make_error(ErrorCode::Busy, "the core that was started has not ended yet");
  if (program_.isEmpty()) {
    return make_error(ErrorCode::NotFound,
                      "the program neuroshardd is missing beside this one: install NeuroShard again");
  }
  if (auto made = make_private_file(output_file_); !made.ok()) return made;
  // Nobody reads the words of a wallet that the core would make: the assistant makes it, and shows them.
  QStringList arguments{"run", "--existing-wallet", "--data-dir", request.data_directory};
  if (request.safe) arguments << "--safe";
  if (!request.text_folder.isEmpty() && !request.safe) arguments << "--text" << request.text_folder;
  const bool joins = !request.invitation.isEmpty();
  if (joins) arguments += QStringList{"--join", "-", "--yes"};
  process_ = new QProcess;  // NOLINT: deleted when it has finished; see the header
  process_->setProgram(program_);
  process_->setArguments(arguments);
  if (!joins) process_->setStandardInputFile(QProcess::nullDevice());
  process_->setStandardOutputFile(QProcess::nullDevice());
  process_->setStandardErrorFile(output_file_, QIODevice::Append);
  process_->setChildProcessModifier([] { platform::leave_session(); });
  connect(process_, &QProcess::finished, this, &ProcessLauncher::finished);
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) finished(-1, QProcess::NormalExit);
  });
  process_->start();
  if (process_ == nullptr) return {};
  pid_ = process_->processId();
  // Others can read the command line, and the link may hold a secret.
  if (joins) {
    process_->write(request.invitation.toUtf8() + '\n');
    process_->closeWriteChannel();
  }
  return {};
}

std::optional<std::int64_t> ProcessLauncher::pid() const {
  if (process_ == nullptr) return std::nullopt;
  return pid_;
}

void ProcessLauncher::terminate() {
  if (process_ != nullptr) process_->terminate();
}

void ProcessLauncher::finished(int code, QProcess::ExitStatus status) {
  CoreExit exit;
  exit.pid = pid_;
  exit.crashed = status == QProcess::CrashExit;
  exit.code = code;
  exit.said = last_output();
  if (exit.said.isEmpty() && code == -1)
    exit.said = tr("%1 can't be started: %2").arg(program_, process_->errorString());
  process_->disconnect(this);
  process_->deleteLater();
  process_ = nullptr;
  pid_ = 0;
  Q_EMIT ended(exit);
}

QString ProcessLauncher::last_output() const {
  QFile file(output_file_);
  if (!file.open(QIODevice::ReadOnly)) return {};
  if (file.size() > shown_output) file.seek(file.size() - shown_output);
  return QString::fromUtf8(file.read(shown_output)).trimmed();
}

}  // namespace neuroshard::gui
