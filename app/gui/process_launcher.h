// The launcher over real processes.
#pragma once

#include <QPointer>
#include <QProcess>

#include "app/gui/core_launcher.h"

namespace neuroshard::gui {

// Of the programs that are installed together: `name` beside this program, else empty.
QString find_beside(const QString& application_folder, const QString& name);

class ProcessLauncher final : public CoreLauncher {
  Q_OBJECT
 public:
  // `output_file` gets the core's standard error, which is read when it ended; private to the user.
  ProcessLauncher(QString program, QString output_file, QObject* parent = nullptr);
  ~ProcessLauncher() override;  // leaves the process running

  Expected<void> launch(const LaunchRequest& request) override;
  std::optional<std::int64_t> pid() const override;
  void terminate() override;

 private:
  void finished(int code, QProcess::ExitStatus status);
  QString last_output() const;

  QString program_, output_file_;
  QProcess* process_ = nullptr;  // not owned by anything: its destruction would end the core
  std::int64_t pid_ = 0;
};

}  // namespace neuroshard::gui
