// A file that helps to find an error. The core's program collects it, the dialog shows it before it is saved,
// and nothing is sent.
#pragma once

#include <QDialog>
#include <QProcess>

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace neuroshard::ui {

class Theme;

// Threads: ui; the collecting runs in a process of its own.
class DiagnosticsDialog final : public QDialog {
  Q_OBJECT
 public:
  static constexpr qint64 max_preview_bytes = 4 << 20;  // what is shown; the file holds everything
  static constexpr int time_limit_ms = 60'000;

  // `program`: neuroshardd; empty: the dialog says that it was not found. An empty directory is the program's
  // default.
  DiagnosticsDialog(const Theme& theme, const QString& program, const QString& data_directory,
                    QWidget* parent = nullptr);
  ~DiagnosticsDialog() override;

 private:
  QStringList arguments(const QString& option, const QString& value = {}) const;
  void start(const QStringList& arguments, void (DiagnosticsDialog::*done)(bool, const QString&));
  void previewed(bool ok, const QString& text);
  void save();
  void saved(bool ok, const QString& text);

  QString program_, directory_, path_;
  QProcess process_;
  QLabel* state_;
  QPlainTextEdit* preview_;
  QPushButton* save_;
};

}  // namespace neuroshard::ui
