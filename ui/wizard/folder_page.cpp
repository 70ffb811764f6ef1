#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/text/format.h"
#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {
namespace {

// Checkpoints of the standard model and its data; less is possible and tight.
constexpr std::uint64_t comfortable_bytes = 5ull << 30;

}  // namespace

FolderPage::FolderPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  auto* row = new QHBoxLayout;
  folder_ = new QLineEdit(this);
  folder_->setObjectName("setupFolder");
  folder_->setAccessibleName(tr("Data folder"));
  auto* browse = new QPushButton(tr("Browse…"), this);
  row->addWidget(folder_, 1);
  row->addWidget(browse);
  body()->addLayout(row);
  space_ = add_note(QString());
  space_->setObjectName("setupSpace");
  connect(folder_, &QLineEdit::textChanged, this, &FolderPage::look);
  connect(browse, &QPushButton::clicked, this, [this] {
    const QString chosen = QFileDialog::getExistingDirectory(this, tr("Data folder"), folder_->text());
    if (!chosen.isEmpty()) folder_->setText(chosen);
  });
}

QString FolderPage::intro() const {
  return tr(
      "This folder holds the model, its checkpoints and your wallet. Choose a disk with enough space: a "
      "checkpoint of the standard model takes about 250 MiB, and several are kept.");
}

void FolderPage::entered() {
  if (folder_->text().isEmpty()) {
    folder_->setText(draft_.folder.isEmpty() ? services_.default_folder() : draft_.folder);
  } else {
    look();
  }
}

void FolderPage::look() {
  known_ = false;
  show_problem({});
  const QString written = folder_->text();
  if (!QDir::isAbsolutePath(written)) {
    space_->clear();
    if (!written.isEmpty()) show_problem(tr("Enter the full path, beginning with “/”."));
    return Q_EMIT complete_changed();
  }
  draft_.folder = QDir::cleanPath(written);
  services_.look_at(this, draft_.folder, [this, asked = draft_.folder](const FolderInfo& info) {
    if (asked == draft_.folder) show_info(info);
  });
  Q_EMIT complete_changed();
}

void FolderPage::show_info(const FolderInfo& info) {
  draft_.folder_info = info;
  known_ = true;
  if (!info.usable) {
    space_->clear();
    show_problem(info.problem);
    return Q_EMIT complete_changed();
  }
  QString text = tr("%1 free on this disk.").arg(Format::bytes(info.free_bytes));
  if (info.free_bytes < comfortable_bytes)
    text += ' ' + tr("This is little space; %1 is recommended.").arg(Format::bytes(comfortable_bytes));
  if (info.has_data) text += ' ' + tr("This folder already holds NeuroShard data, which will be used.");
  if (info.has_other_files)
    text += ' ' + tr("This folder holds other files. An empty folder is easier to manage.");
  space_->setText(text);
  Q_EMIT complete_changed();
}

// A wallet that was made in another folder is not this one's.
void FolderPage::leave(std::function<void(bool)> done) {
  if (draft_.made_in != draft_.folder) {
    draft_.made_wallet.clear();
    draft_.made_in.clear();
    wipe(&draft_.words);
  }
  done(true);
}

bool FolderPage::complete() const {
  return known_ && draft_.folder_info.usable;
}

}  // namespace neuroshard::ui
