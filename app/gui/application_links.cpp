// The application: neuroshard: links and cores on other computers. Nothing happens before the user said yes.
#include <QFileDialog>
#include <QMessageBox>
#include <QPushButton>

#include "app/gui/application.h"
#include "app/gui/link.h"

namespace neuroshard::gui {

void Application::handle_link(const QString& text) {
  show_window();
  const Link link = parse_link(text);
  if (const auto* attach = std::get_if<AttachLink>(&link)) {
    QMessageBox question(QMessageBox::Question, tr("Connect to another core?"),
                         tr("A link asks NeuroShard to connect to the core that this file "
                            "names:\n\n%1\n\nThe window then shows "
                            "and steers that core. Only do this if you know the file.")
                             .arg(attach->file),
                         QMessageBox::Cancel, window_.get());
    question.setObjectName("linkQuestion");
    question.setTextFormat(Qt::PlainText);
    const QPushButton* yes = question.addButton(tr("Connect"), QMessageBox::AcceptRole);
    question.exec();
    if (question.clickedButton() == static_cast<const QAbstractButton*>(yes)) attach_file(attach->file);
    return;
  }
  QMessageBox box(QMessageBox::Information, tr("A link to NeuroShard"), QString(), QMessageBox::Close,
                  window_.get());
  box.setObjectName("linkQuestion");
  box.setTextFormat(Qt::PlainText);
  if (const auto* invite = std::get_if<InviteLink>(&link)) {
    box.setText(tr("The link invites this computer to a network, by way of %1. This version trains on its "
                   "own; the network "
                   "comes later. Nothing was changed.")
                    .arg(invite->peer));
  } else {
    box.setText(tr("NeuroShard cannot follow that link. %1 Nothing was changed.")
                    .arg(std::get<UnknownLink>(link).why));
  }
  box.exec();
}

void Application::attach_elsewhere() {
  const QString file = QFileDialog::getOpenFileName(window_.get(), tr("Control file of the other computer"),
                                                    QString(), tr("Control files (*.json);;All files (*)"));
  if (!file.isEmpty()) attach_file(file);
}

void Application::attach_file(const QString& file) {
  supervisor_->open_remote(file);
}

}  // namespace neuroshard::gui
