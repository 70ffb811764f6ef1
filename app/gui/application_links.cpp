// The application: neuroshard: links and cores on other computers. Nothing happens before the user said yes.
#include <QDir>
#include <QFileDialog>
#include <QJsonDocument>
#include <QJsonObject>
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
  if (const auto* join = std::get_if<JoinLink>(&link)) return look_at_invitation(join->link);
  QMessageBox box(QMessageBox::Information, tr("A link to NeuroShard"), QString(), QMessageBox::Close,
                  window_.get());
  box.setObjectName("linkQuestion");
  box.setTextFormat(Qt::PlainText);
  if (const auto* invite = std::get_if<InviteLink>(&link)) {
    box.setText(
        tr("The link names %1 as a computer to begin with, but not the network. Ask for an invitation "
           "that begins with neuroshard:join. Nothing was changed.")
            .arg(invite->peer));
  } else {
    box.setText(tr("NeuroShard cannot follow that link. %1 Nothing was changed.")
                    .arg(std::get<UnknownLink>(link).why));
  }
  box.exec();
}

// What is in it, the core's program says: one reader for all.
void Application::look_at_invitation(const QString& text) {
  setup_services_->run(this, {"network", "show", text, "--json"}, {},
                       [this, text](const ui::CommandOutcome& outcome) {
                         const QJsonObject profile = QJsonDocument::fromJson(outcome.out).object();
                         if (outcome.ok() && !profile.isEmpty()) return ask_to_join(text, profile);
                         show_error(tr("Reading the invitation"), QString::fromUtf8(outcome.err).trimmed());
                       });
}

void Application::ask_to_join(const QString& text, const QJsonObject& profile) {
  const QJsonObject consensus = profile["consensus"].toObject();
  const QString name = consensus["name"].toString();
  const QString folder = places_.default_data + "-" + name;
  const QString publisher = consensus["publisher_key"].toString();
  QMessageBox question(
      QMessageBox::Question, tr("Join the network “%1”?").arg(name),
      tr("A link invites this computer to the network “%1”. Only join if you know who sent it.\n\n"
         "Network: %2\nModel: %L3 parameters\nPublisher: %4\nIts data goes into: %5\n\n"
         "The data that is used now stays as it is; “Use another data folder…” goes back to it.")
          .arg(name, profile["network_id"].toString())
          .arg(profile["parameters"].toInteger())
          .arg(publisher == "none" ? tr("none: nobody answers for its addresses") : publisher, folder),
      QMessageBox::Cancel, window_.get());
  question.setObjectName("linkQuestion");
  question.setTextFormat(Qt::PlainText);
  const QPushButton* yes = question.addButton(tr("Join"), QMessageBox::AcceptRole);
  question.setDefaultButton(QMessageBox::Cancel);
  question.exec();
  if (question.clickedButton() != static_cast<const QAbstractButton*>(yes)) return;
  background_.run(
      this, [folder] { return QDir().mkpath(folder); },
      [this, folder, text](bool made) {
        if (!made) return show_error(tr("Joining the network"), tr("%1 cannot be made.").arg(folder));
        config_.set_data_directory(folder, {});
        LaunchRequest request;
        request.data_directory = folder;
        request.invitation = text;
        supervisor_->move_to(request);
      });
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
