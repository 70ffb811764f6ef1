#include "ui/pages/invite_dialog.h"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QGuiApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/widgets/card.h"
#include "ui/widgets/qr_code.h"

namespace neuroshard::ui {
namespace {

constexpr int dots = 8;  // of a module in a saved picture: sharp when it is printed

}  // namespace

InviteDialog::InviteDialog(const QString& link, const QString& network, QWidget* parent) : QDialog(parent) {
  setObjectName(QStringLiteral("invite_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Invite to the network %1").arg(network));
  resize(440, 560);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->addWidget(
      make_paragraph(tr("Send this link, or show its QR code. NeuroShard asks the receiver before it joins. "
                        "The link names the network and a few first peers; it holds no secret."),
                     nullptr, this));
  auto* code = new QrCode(this);
  code->setObjectName(QStringLiteral("invite_code"));
  code->setAccessibleName(tr("QR code of the link"));
  code->setVisible(code->set_text(link));
  column->addWidget(code, 1);
  auto* line = new QLineEdit(link, this);
  line->setObjectName(QStringLiteral("invite_link"));
  line->setAccessibleName(tr("Link of the invitation"));
  line->setReadOnly(true);
  line->setCursorPosition(0);
  column->addWidget(line);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  auto* copy = buttons->addButton(tr("Copy the link"), QDialogButtonBox::ActionRole);
  copy->setObjectName(QStringLiteral("invite_copy"));
  copy->setDefault(true);
  connect(copy, &QPushButton::clicked, this, [copy, link] {
    QGuiApplication::clipboard()->setText(link);
    copy->setText(tr("Copied"));
  });
  auto* save = buttons->addButton(tr("Save the code …"), QDialogButtonBox::ActionRole);
  save->setObjectName(QStringLiteral("invite_save"));
  save->setEnabled(code->modules() > 0);
  connect(save, &QPushButton::clicked, this, [this, code] {
    auto* ask =
        new QFileDialog(this, tr("Save the code"), QStringLiteral("invitation.png"), tr("Pictures (*.png)"));
    ask->setAttribute(Qt::WA_DeleteOnClose);
    ask->setAcceptMode(QFileDialog::AcceptSave);
    ask->setDefaultSuffix(QStringLiteral("png"));
    connect(ask, &QFileDialog::fileSelected, this, [this, code](const QString& path) {
      const QImage image = code->image().scaled(code->modules() * dots, code->modules() * dots);
      if (!image.save(path)) setWindowTitle(tr("%1 could not be written").arg(path));
    });
    ask->open();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
}

}  // namespace neuroshard::ui
