#include "ui/pages/confirm.h"

#include <QMessageBox>
#include <QPushButton>

#include "ui/widgets/card.h"

namespace neuroshard::ui {

void confirm(QWidget* parent, const Question& question, std::function<void()> yes) {
  auto* box = new QMessageBox(parent);
  box->setObjectName(QStringLiteral("confirm"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->setWindowTitle(question.title);
  box->setText(question.title);
  box->setInformativeText(question.text);
  QPushButton* act = box->addButton(question.action, QMessageBox::AcceptRole);
  act->setObjectName(QStringLiteral("confirm_action"));
  act->setProperty("role", question.destructive ? QStringLiteral("danger") : QStringLiteral("primary"));
  QPushButton* keep = box->addButton(QMessageBox::Cancel);
  box->setDefaultButton(question.destructive ? keep : act);
  box->setEscapeButton(keep);
  QObject::connect(act, &QPushButton::clicked, parent, std::move(yes));
  box->open();
}

}  // namespace neuroshard::ui
