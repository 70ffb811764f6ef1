#include "app/gui/machine_setup.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QPointer>
#include <QProcess>
#include <QStorageInfo>
#include <memory>

#include "core/platform/process/process_memory.h"
#include "core/platform/sensor/cpu.h"
#include "ui/text/program_error.h"

namespace neuroshard::gui {
namespace {

QString tr(const char* text) {
  return QCoreApplication::translate("MachineSetup", text);
}

// Installed as share/neuroshardd beside the programs' folder.
QString find_sample_text(const QString& program) {
  if (program.isEmpty()) return {};
  const QString folder =
      QDir::cleanPath(QFileInfo(program).path() + QStringLiteral("/../share/neuroshardd/sample-text"));
  return QFileInfo(folder).isDir() ? folder : QString();
}

// As neuroshardd decides whether a node of the folder may still join a network.
bool is_in_use(const QDir& folder) {
  constexpr qint64 longest_profile = 256 * 1024;
  QFile profile(folder.filePath("profile.json"));
  if (!profile.exists()) return false;
  if (!profile.open(QIODevice::ReadOnly)) return true;
  const QJsonObject written = QJsonDocument::fromJson(profile.read(longest_profile)).object();
  return written["consensus"].toObject()["name"].toString() != "solo" || folder.exists("chain") ||
         !QDir(folder.filePath("data")).isEmpty() || !QDir(folder.filePath("checkpoints")).isEmpty();
}

}  // namespace

ui::FolderInfo look_at_folder(const QString& folder) {
  ui::FolderInfo info;
  const QFileInfo there(folder);
  if (there.exists() && !there.isDir()) {
    info.problem = tr("This is a file, not a folder.");
    return info;
  }
  // The nearest folder that exists decides what can be made in it.
  QFileInfo nearest = there;
  while (!nearest.exists() && !nearest.isRoot()) nearest = QFileInfo(nearest.path());
  if (!nearest.isDir() || !nearest.isWritable()) {
    info.problem =
        tr("You have no permission to write to %1. Choose another folder.").arg(nearest.filePath());
    return info;
  }
  const QStorageInfo storage(nearest.filePath());
  if (storage.isReadOnly()) {
    info.problem = tr("That disk is read-only. Choose another one.");
    return info;
  }
  info.free_bytes = static_cast<std::uint64_t>(std::max<qint64>(0, storage.bytesAvailable()));
  info.usable = true;
  const QDir dir(folder);
  info.has_data = dir.exists("FORMAT");
  info.in_use = is_in_use(dir);
  const bool has_wallet = dir.exists("wallet.keystore");
  info.has_other_files = !info.has_data && !has_wallet && there.exists() && !dir.isEmpty();
  return info;
}

MachineSetup::MachineSetup(QString program, QString default_folder, Background& background)
    : program_(std::move(program)),
      default_folder_(std::move(default_folder)),
      sample_text_(find_sample_text(program_)),
      background_(background) {}

ui::MachineInfo MachineSetup::machine() const {
  return {static_cast<unsigned>(platform::cpu_info().usable_cpus), platform::available_memory().total};
}

void MachineSetup::look_at(QObject* context, const QString& folder,
                           std::function<void(const ui::FolderInfo&)> then) {
  background_.run(
      context, [folder] { return look_at_folder(folder); },
      [this, guard = QPointer(context), folder, then = std::move(then)](ui::FolderInfo info) {
        if (!QFile::exists(QDir(folder).filePath("wallet.keystore"))) return then(info);
        run(guard, {"wallet", "show", "--data-dir", folder, "--json"}, {},
            [info, then](const ui::CommandOutcome& outcome) mutable {
              info.wallet_id = QJsonDocument::fromJson(outcome.out).object().value("wallet_id").toString();
              if (!outcome.ok()) {
                info.usable = false;
                info.problem = ui::error_of_program(outcome.err);
              }
              then(info);
            });
      });
}

void MachineSetup::run(QObject* context, const QStringList& arguments, const QByteArray& input,
                       std::function<void(ui::CommandOutcome)> then) {
  auto* process = new QProcess(context);
  process->setProgram(program_);
  process->setArguments(arguments);
  const auto finish = [process, then = std::move(then)](int code) {
    process->disconnect();
    ui::CommandOutcome outcome{code, process->readAllStandardOutput(), process->readAllStandardError()};
    if (code != 0 && outcome.err.isEmpty()) outcome.err = process->errorString().toUtf8();
    process->deleteLater();
    then(std::move(outcome));
  };
  QObject::connect(process, &QProcess::finished, context, [finish](int code, QProcess::ExitStatus status) {
    finish(status == QProcess::NormalExit ? code : -1);
  });
  QObject::connect(process, &QProcess::errorOccurred, context, [finish](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) finish(-1);
  });
  process->start();
  process->write(input);
  process->closeWriteChannel();
}

}  // namespace neuroshard::gui
