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
namespace {

constexpr const char* invitation_begins = "neuroshard:join";

// The sample of this program, or of one that an upgrade has deleted.
bool is_sample(const QString& folder, const QString& sample) {
  if (sample.isEmpty() || folder.isEmpty()) return false;
  return folder == sample ||
         (folder.endsWith(QStringLiteral("/sample-text")) &&
          folder.contains(QStringLiteral("/share/neuroshard")) && !QFileInfo::exists(folder));
}

}  // namespace

StartPage::StartPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  sample_ = new QRadioButton(tr("Train alone, from the sample text"), this);
  sample_->setObjectName("setupSample");
  body()->addWidget(sample_);
  auto* about_sample = add_note(
      tr("Shakespeare's Richard III, a play in the public domain. Use it to try NeuroShard: the loss falls "
         "within a minute."));
  sample_->setHidden(services.sample_text().isEmpty());
  about_sample->setHidden(services.sample_text().isEmpty());
  solo_ = new QRadioButton(tr("Train alone, from my text"), this);
  solo_->setObjectName("setupSolo");
  solo_->setChecked(true);
  body()->addWidget(solo_);
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
      tr("NeuroShard uses every readable text file in the folder. The text stays on this computer. You can "
         "also choose a folder later."));
  join_ = new QRadioButton(tr("Train with others, by invitation"), this);
  join_->setObjectName("setupJoin");
  body()->addWidget(join_);
  invitation_ = new QLineEdit(this);
  invitation_->setObjectName("setupInvitation");
  invitation_->setAccessibleName(tr("Invitation to a network"));
  invitation_->setPlaceholderText(QString::fromLatin1(invitation_begins) + QStringLiteral("?to=…"));
  invitation_->setEnabled(false);
  body()->addWidget(invitation_);
  connect(join_, &QRadioButton::toggled, this, [this](bool join) {
    invitation_->setEnabled(join);
    if (join) invitation_->setFocus();
    Q_EMIT complete_changed();
  });
  connect(invitation_, &QLineEdit::textChanged, this, &SetupPage::complete_changed);
  connect(text_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (!text.isEmpty()) solo_->setChecked(true);
  });
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
      "Alone, this computer trains on the sample or on a folder of your text. With others, it trains the "
      "model of their "
      "network, and a member invites you. NeuroShard shows the invitation before you join.");
}

void StartPage::entered() {
  const QString sample = services_.sample_text();
  const bool was_sample = is_sample(draft_.text_folder, sample);
  if (text_->text().isEmpty() && !was_sample) text_->setText(draft_.text_folder);
  // Of a link that was followed while the assistant was open.
  if (!draft_.invitation.isEmpty()) {
    invitation_->setText(draft_.invitation);
    join_->setChecked(true);
    draft_.invitation.clear();
  }
  // Somebody who tries the program for the first time has nothing to look for.
  const bool is_first = !draft_.again && !draft_.folder_info.has_data && !sample.isEmpty();
  if (text_->text().isEmpty() && solo_->isChecked() && (was_sample || is_first)) sample_->setChecked(true);
  autostart_->setChecked(draft_.autostart);
}

bool StartPage::complete() const {
  return !join_->isChecked() || !invitation_->text().trimmed().isEmpty();
}

void StartPage::leave(std::function<void(bool)> done) {
  const QString text = sample_->isChecked() ? services_.sample_text() : text_->text().trimmed();
  if (!text.isEmpty() && !(QDir::isAbsolutePath(text) && QFileInfo(text).isReadable())) {
    show_problem(
        tr("%1 can't be read. Choose a folder of text files, or leave the line empty for now.").arg(text));
    return done(false);
  }
  const QString invitation = join_->isChecked() ? invitation_->text().trimmed() : QString();
  if (!invitation.isEmpty() &&
      !invitation.startsWith(QLatin1String(invitation_begins), Qt::CaseInsensitive)) {
    show_problem(tr("That is not an invitation: an invitation begins with “%1”. A member of the network "
                    "creates one with “neuroshardd network invite”.")
                     .arg(QLatin1String(invitation_begins)));
    return done(false);
  }
  show_problem({});
  draft_.invitation = invitation;
  draft_.text_folder = text.isEmpty() ? QString() : QDir::cleanPath(text);
  draft_.autostart = autostart_->isChecked();
  done(true);
}

}  // namespace neuroshard::ui
