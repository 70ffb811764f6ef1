// One run of neuroshardd beside the window, with --json: its last object, or why there is none.
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QProcess>

namespace neuroshard::ui {

// Threads: ui. Nothing here waits.
class ProgramRun final : public QObject {
  Q_OBJECT
 public:
  explicit ProgramRun(QString program, QObject* parent = nullptr);
  ~ProgramRun() override;

  bool running() const { return process_.state() != QProcess::NotRunning; }
  // One at a time. input: all that it reads from standard input.
  void start(const QStringList& arguments, const QByteArray& input = {});

 Q_SIGNALS:
  void done(const QJsonObject& said);
  void failed(const QString& why);

 private:
  void ended(int code, QProcess::ExitStatus status);

  const QString program_;
  QProcess process_;
};

}  // namespace neuroshard::ui
