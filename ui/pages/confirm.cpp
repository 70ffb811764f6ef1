#include "ui/pages/confirm.h"

#include <QLabel>
#include <QMessageBox>
#include <QPushButton>

#include "ui/bridge/bridge.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {
constexpr int text_width = 360;
}  // namespace

void confirm(QWidget* parent, const Question& question, std::function<void()> yes, Bridge* bridge) {
  auto* box = new QMessageBox(parent);
  box->setObjectName(QStringLiteral("confirm"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->setWindowTitle(question.title);
  box->setText(question.title);
  box->setInformativeText(question.text);
  // Else Qt makes it no wider than the heading, and a sentence is a tall column of words.
  if (auto* text = box->findChild<QLabel*>(QStringLiteral("qt_msgbox_informativelabel")))
    text->setMinimumWidth(text_width);
  QPushButton* act = box->addButton(question.action, QMessageBox::AcceptRole);
  act->setObjectName(QStringLiteral("confirm_action"));
  act->setProperty("role", question.destructive ? QStringLiteral("danger") : QStringLiteral("primary"));
  QPushButton* keep = box->addButton(QMessageBox::Cancel);
  box->setDefaultButton(question.destructive ? keep : act);
  box->setEscapeButton(keep);
  QObject::connect(act, &QPushButton::clicked, parent, std::move(yes));
  if (bridge != nullptr) QObject::connect(bridge, &Bridge::attached_changed, box, &QDialog::reject);
  box->open();
}

}  // namespace neuroshard::ui
