#include "ui/pages/invite_dialog.h"

#include <QCheckBox>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "core/node/network_view.h"
#include "ui/widgets/card.h"
#include "ui/widgets/qr_code.h"

namespace neuroshard::ui {
namespace {

constexpr int dots = 8;  // of a module in a saved picture: sharp when it is printed

}  // namespace

InviteDialog::InviteDialog(Content content, QWidget* parent) : QDialog(parent), content_(std::move(content)) {
  setObjectName(QStringLiteral("invite_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Invite to the network %1").arg(content_.network));
  resize(440, 600);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  explanation_ = make_paragraph(QString(), nullptr, this);
  explanation_->setObjectName(QStringLiteral("invite_explanation"));
  column->addWidget(explanation_);
  vote_ = new QCheckBox(tr("May vote"), this);
  vote_->setObjectName(QStringLiteral("invite_vote"));
  vote_->setVisible(content_.can_let_vote);
  column->addWidget(vote_);
  note_ = make_paragraph(QString(), nullptr, this);
  note_->setObjectName(QStringLiteral("invite_note"));
  note_->setVisible(false);
  column->addWidget(note_);
  code_ = new QrCode(this);
  code_->setObjectName(QStringLiteral("invite_code"));
  code_->setAccessibleName(tr("QR code of the link"));
  column->addWidget(code_, 1);
  line_ = new QLineEdit(this);
  line_->setObjectName(QStringLiteral("invite_link"));
  line_->setAccessibleName(tr("Link of the invitation"));
  line_->setReadOnly(true);
  column->addWidget(line_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  copy_ = buttons->addButton(tr("Copy the link"), QDialogButtonBox::ActionRole);
  copy_->setObjectName(QStringLiteral("invite_copy"));
  copy_->setDefault(true);
  connect(copy_, &QPushButton::clicked, this, [this] {
    QGuiApplication::clipboard()->setText(line_->text());
    copy_->setText(tr("Copied"));
  });
  auto* save = buttons->addButton(tr("Save the code …"), QDialogButtonBox::ActionRole);
  save->setObjectName(QStringLiteral("invite_save"));
  connect(save, &QPushButton::clicked, this, &InviteDialog::save_code);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  connect(vote_, &QCheckBox::toggled, this, &InviteDialog::choose_vote);
  show_link();
  save->setEnabled(code_->modules() > 0);
}

void InviteDialog::begin() {
  if (!content_.votes_by_invitation) return;
  if (content_.can_let_vote)
    vote_->setChecked(true);
  else
    show_problem(tr("Your wallet has no vote yet, so this link gives none."));
}

void InviteDialog::choose_vote(bool vote) {
  if (vote && vote_link_.isEmpty() && !std::exchange(asked_, true)) Q_EMIT vote_requested();
  show_link();
}

void InviteDialog::show_vote(const node::Invitation& made) {
  if (!made.may_vote)
    return show_problem(tr("The link gives no vote: %1").arg(QString::fromStdString(made.no_vote)));
  vote_link_ = QString::fromStdString(made.link);
  show_link();
}

void InviteDialog::show_problem(const QString& problem) {
  note_->setText(problem);
  note_->setVisible(true);
  vote_->setChecked(false);
  vote_->setEnabled(false);
}

void InviteDialog::show_link() {
  const bool vote = vote_->isChecked();
  const QString& link = vote ? vote_link_ : content_.link;  // empty until the core has answered
  explanation_->setText(
      vote
          ? tr("Send this link to one person, in private. It holds a secret: whoever uses it first can vote, "
               "once, within 7 days.")
          : tr("Send this link, or show its QR code. NeuroShard asks the receiver before it joins. The link "
               "names the network and a few first peers; it holds no secret."));
  code_->setVisible(code_->set_text(link) && !link.isEmpty());
  line_->setText(link);
  line_->setCursorPosition(0);
  copy_->setText(tr("Copy the link"));
  copy_->setEnabled(!link.isEmpty());
}

void InviteDialog::save_code() {
  auto* ask =
      new QFileDialog(this, tr("Save the code"), QStringLiteral("invitation.png"), tr("Pictures (*.png)"));
  ask->setAttribute(Qt::WA_DeleteOnClose);
  ask->setAcceptMode(QFileDialog::AcceptSave);
  ask->setDefaultSuffix(QStringLiteral("png"));
  connect(ask, &QFileDialog::fileSelected, this, [this](const QString& path) {
    const QImage image = code_->image().scaled(code_->modules() * dots, code_->modules() * dots);
    if (!image.save(path)) setWindowTitle(tr("%1 could not be written").arg(path));
  });
  ask->open();
}

}  // namespace neuroshard::ui
