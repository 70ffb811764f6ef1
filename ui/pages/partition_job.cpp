#include "ui/pages/partition_job.h"

#include <QFile>
#include <QTimer>

#include "ui/text/program_error.h"

namespace neuroshard::ui {
namespace {

constexpr int interrupted_exit = 130;  // neuroshardd's, stopped before there was an answer

QString number(double value) {
  return QString::number(value, 'g', 17);
}

}  // namespace

QStringList PartitionRequest::arguments(const QString& layout_file) const {
  QStringList all{QStringLiteral("partition"),
                  QStringLiteral("--json"),
                  QStringLiteral("--graph"),
                  graph,
                  QStringLiteral("--k"),
                  QString::number(blocks),
                  QStringLiteral("--layout"),
                  layout_file,
                  QStringLiteral("--time-limit"),
                  QString::number(time_limit),
                  QStringLiteral("--end-with-stdin")};
  if (memory_bytes > 0) all << QStringLiteral("--memory") << number(memory_bytes);
  if (bandwidth > 0) all << QStringLiteral("--bandwidth") << number(bandwidth);
  for (const QString& shape : input_shapes) all << QStringLiteral("--input-shape") << shape;
  for (const QString& size : dimensions) all << QStringLiteral("--dim") << size;
  return all;
}

PartitionJob::PartitionJob(QString program, QObject* parent)
    : QObject(parent), program_(std::move(program)), process_(new QProcess(this)) {
  connect(process_, &QProcess::finished, this, &PartitionJob::ended);
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) Q_EMIT failed(process_->errorString());
  });
}

PartitionJob::~PartitionJob() {
  process_->disconnect(this);
  if (running()) process_->kill();
}

void PartitionJob::start(const PartitionRequest& request) {
  if (running()) return;
  stopping_ = false;
  folder_ = std::make_unique<QTemporaryDir>();
  if (!folder_->isValid()) {
    Q_EMIT failed(folder_->errorString());
    return;
  }
  clock_.start();
  // Its input stays open as long as this program lives (--end-with-stdin).
  process_->start(program_, request.arguments(folder_->filePath(QStringLiteral("layout.json"))));
}

void PartitionJob::stop() {
  if (!running()) return;
  stopping_ = true;
  process_->terminate();
  QTimer::singleShot(kill_after_ms, process_, [this] {
    if (stopping_ && running()) process_->kill();
  });
}

void PartitionJob::ended(int code, QProcess::ExitStatus status) {
  const QByteArray output = process_->readAllStandardOutput(), errors = process_->readAllStandardError();
  QByteArray layout;
  QFile file(folder_->filePath(QStringLiteral("layout.json")));
  if (output.size() <= max_output_bytes && file.size() <= max_output_bytes && file.open(QIODevice::ReadOnly))
    layout = file.readAll();
  file.close();
  folder_.reset();
  const auto report = parse_partition(output, layout);
  if (report) {
    Q_EMIT done(*report);
  } else if (stopping_) {
    Q_EMIT cancelled();
  } else if (status == QProcess::CrashExit) {
    Q_EMIT failed(tr("The partition program ended unexpectedly. The system log may say why."));
  } else if (code == interrupted_exit) {
    Q_EMIT cancelled();
  } else {
    const QString why = error_of_program(errors);
    Q_EMIT failed(why.isEmpty() ? tr("The partition program gave no result (exit code %1).").arg(code) : why);
  }
}

}  // namespace neuroshard::ui
