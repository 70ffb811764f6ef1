#include "ui/pages/diagnostics_dialog.h"

#include <QDate>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

DiagnosticsDialog::DiagnosticsDialog(const Theme& theme, const QString& program,
                                     const QString& data_directory, QWidget* parent)
    : QDialog(parent), program_(program), directory_(data_directory) {
  setObjectName(QStringLiteral("diagnostics_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Diagnostics"));
  resize(760, 560);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->addWidget(
      make_paragraph(tr("This file helps to find an error. It holds versions, settings, hardware, the end of "
                        "the log and the last crash. Keys, passwords and tokens are left out, and folder "
                        "names are shortened. NeuroShard saves the file and never sends it. Its content:"),
                     nullptr, this));
  preview_ = new QPlainTextEdit(this);
  preview_->setObjectName(QStringLiteral("diagnostics_preview"));
  preview_->setAccessibleName(tr("Content of the file"));
  preview_->setReadOnly(true);
  preview_->setLineWrapMode(QPlainTextEdit::NoWrap);
  preview_->setTabChangesFocus(true);
  preview_->setFont(theme.monospace());
  column->addWidget(preview_, 1);
  state_ = make_paragraph({}, "muted", this);
  state_->setObjectName(QStringLiteral("diagnostics_state"));
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addWidget(state_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  save_ = buttons->addButton(tr("Save …"), QDialogButtonBox::ActionRole);
  save_->setObjectName(QStringLiteral("diagnostics_save"));
  save_->setProperty("role", QStringLiteral("primary"));
  save_->setEnabled(false);
  connect(save_, &QPushButton::clicked, this, &DiagnosticsDialog::save);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  if (program_.isEmpty()) {
    state_->setText(
        tr("Diagnostics can't be collected here: the core runs on another computer, or neuroshardd is not "
           "beside this app. Run \"neuroshardd diagnostics --preview\" on the computer of the core."));
    return;
  }
  state_->setText(tr("Collecting …"));
  start(arguments(QStringLiteral("--preview")), &DiagnosticsDialog::previewed);
}

DiagnosticsDialog::~DiagnosticsDialog() {
  process_.disconnect(this);
  if (process_.state() != QProcess::NotRunning) process_.kill();
}

QStringList DiagnosticsDialog::arguments(const QString& option, const QString& value) const {
  QStringList all{QStringLiteral("diagnostics"), option};
  if (!value.isEmpty()) all << value;
  if (!directory_.isEmpty()) all << QStringLiteral("--data-dir") << directory_;
  return all;
}

void DiagnosticsDialog::start(const QStringList& arguments,
                              void (DiagnosticsDialog::*done)(bool, const QString&)) {
  process_.disconnect(this);
  connect(&process_, &QProcess::finished, this, [this, done](int code, QProcess::ExitStatus status) {
    const bool ok = status == QProcess::NormalExit && code == 0;
    const QByteArray output = ok ? process_.readAllStandardOutput() : process_.readAllStandardError();
    (this->*done)(ok, QString::fromUtf8(output.left(max_preview_bytes)));
  });
  connect(&process_, &QProcess::errorOccurred, this, [this, done](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) (this->*done)(false, process_.errorString());
  });
  process_.start(program_, arguments);
  QTimer::singleShot(time_limit_ms, &process_, [this] {
    if (process_.state() != QProcess::NotRunning) process_.kill();
  });
}

void DiagnosticsDialog::previewed(bool ok, const QString& text) {
  if (!ok) {
    state_->setText(tr("Diagnostics could not be collected: %1").arg(text.trimmed()));
    return;
  }
  preview_->setPlainText(text);
  state_->setText(tr("Check the content. The saved file holds exactly what you see."));
  save_->setEnabled(true);
}

void DiagnosticsDialog::save() {
  auto* dialog = new QFileDialog(this, tr("Save diagnostics"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Archive (*.zip)"));
  dialog->setDefaultSuffix(QStringLiteral("zip"));
  dialog->selectFile(
      QStringLiteral("neuroshard-diagnostics-%1.zip").arg(QDate::currentDate().toString(Qt::ISODate)));
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    path_ = path;
    save_->setEnabled(false);
    state_->setText(tr("Saving …"));
    start(arguments(QStringLiteral("--out"), path), &DiagnosticsDialog::saved);
  });
  dialog->open();
}

void DiagnosticsDialog::saved(bool ok, const QString& text) {
  save_->setEnabled(true);
  state_->setText(ok ? tr("Saved as %1.").arg(path_)
                     : tr("The file could not be saved: %1").arg(text.trimmed()));
}

}  // namespace neuroshard::ui
