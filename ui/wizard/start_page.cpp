#include <QCheckBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QVBoxLayout>

#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {

StartPage::StartPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  auto* network = new QRadioButton(tr("With others: not in this version yet"), this);
  network->setEnabled(false);
  auto* solo = new QRadioButton(tr("On my own, from my text"), this);
  solo->setChecked(true);
  body()->addWidget(network);
  body()->addWidget(solo);
  auto* row = new QHBoxLayout;
  text_ = new QLineEdit(this);
  text_->setObjectName("setupText");
  text_->setAccessibleName(tr("Folder of text"));
  text_->setPlaceholderText(tr("A folder of text files"));
  auto* browse = new QPushButton(tr("Browse…"), this);
  browse->setAccessibleName(tr("Browse for the folder of text"));
  row->addWidget(text_, 1);
  row->addWidget(browse);
  body()->addLayout(row);
  add_note(
      tr("Every readable text file in the folder is used; the text stays on this computer. It can be given "
         "later too."));
  autostart_ = new QCheckBox(tr("Start with my session, in the tray"), this);
  autostart_->setObjectName("setupAutostart");
  body()->addWidget(autostart_);
  connect(browse, &QPushButton::clicked, this, [this] {
    const QString chosen = QFileDialog::getExistingDirectory(this, tr("Folder of text"), text_->text());
    if (!chosen.isEmpty()) text_->setText(chosen);
  });
}

QString StartPage::intro() const {
  return tr(
      "A node on its own learns from a folder of your text. The network of nodes comes in a later version; "
      "what is "
      "set up now stays good for it.");
}

void StartPage::entered() {
  if (text_->text().isEmpty()) text_->setText(draft_.text_folder);
  autostart_->setChecked(draft_.autostart);
}

void StartPage::leave(std::function<void(bool)> done) {
  const QString text = text_->text().trimmed();
  if (!text.isEmpty() && !(QDir::isAbsolutePath(text) && QFileInfo(text).isReadable())) {
    show_problem(
        tr("%1 cannot be read. Choose a folder of text files, or leave the line empty for now.").arg(text));
    return done(false);
  }
  show_problem({});
  draft_.text_folder = text.isEmpty() ? QString() : QDir::cleanPath(text);
  draft_.autostart = autostart_->isChecked();
  done(true);
}

}  // namespace neuroshard::ui
