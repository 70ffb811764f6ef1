// One run of `neuroshardd partition` beside the window: reading a model may take long and, for TorchScript,
// runs its code, which belongs in a process of its own.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QTemporaryDir>
#include <memory>

#include "ui/pages/partition_report.h"

namespace neuroshard::ui {

struct PartitionRequest {
  QString graph;  // file, or "model:…"
  int blocks = 2;
  double memory_bytes = 0;   // of each block; 0 = no limit
  double bandwidth = 0;      // bytes/s of each block; 0 = transfers cost nothing
  int time_limit = 8;        // seconds to search
  QStringList input_shapes;  // of a TorchScript model
  QStringList dimensions;    // of an ONNX model: "batch=8"
  QStringList arguments(const QString& layout_file) const;
};

// Threads: ui. Nothing here waits.
class PartitionJob final : public QObject {
  Q_OBJECT
 public:
  static constexpr qint64 max_output_bytes = 256 << 20;
  static constexpr int kill_after_ms = 5000;  // what does not end when asked

  explicit PartitionJob(QString program, QObject* parent = nullptr);
  ~PartitionJob() override;

  bool running() const { return process_->state() != QProcess::NotRunning; }
  qint64 process() const { return process_->processId(); }  // 0 = none
  // One at a time.
  void start(const PartitionRequest& request);
  // Asks for the best answer so far; without one, cancelled() follows.
  void stop();
  double seconds() const { return static_cast<double>(clock_.elapsed()) / 1000; }

 Q_SIGNALS:
  void done(const neuroshard::ui::PartitionReport& report);
  void failed(const QString& why);
  void cancelled();

 private:
  void ended(int code, QProcess::ExitStatus status);

  QString program_;
  QProcess* const process_;
  std::unique_ptr<QTemporaryDir> folder_;
  QElapsedTimer clock_;
  bool stopping_ = false;
};

}  // namespace neuroshard::ui
