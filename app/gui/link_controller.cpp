#include "app/gui/link_controller.h"

#include <QFileDialog>
#include <QJsonDocument>
#include <QMessageBox>
#include <QPushButton>

#include "ui/text/format.h"
#include "ui/text/program_error.h"

namespace neuroshard::gui {

LinkController::LinkController(Parts parts, QString default_data)
    : parts_(parts), default_data_(std::move(default_data)) {}

void LinkController::handle(const QString& text, const JoinPlace& place) {
  const Link link = parse_link(text);
  if (const auto* attach = std::get_if<AttachLink>(&link)) return ask_to_attach(*attach);
  if (const auto* join = std::get_if<JoinLink>(&link)) return read_invitation(join->link, place);
  if (const auto* invite = std::get_if<InviteLink>(&link))
    return refuse(tr("The link names %1 as a first peer, but not the network. Ask for an invitation "
                     "that begins with neuroshard:join. Nothing was changed.")
                      .arg(invite->peer));
  refuse(
      tr("NeuroShard can't follow that link. %1 Nothing was changed.").arg(std::get<UnknownLink>(link).why));
  if (!place.folder.isEmpty()) Q_EMIT not_joined(place);
}

void LinkController::ask_to_attach(const AttachLink& link) {
  QMessageBox question(QMessageBox::Question, tr("Connect to another core?"),
                       tr("A link asks NeuroShard to connect to the core that this file names:\n\n%1\n\n"
                          "The window then shows and controls that core. Connect only if you know the file.")
                           .arg(link.file),
                       QMessageBox::Cancel, &parts_.window);
  question.setObjectName("linkQuestion");
  question.setTextFormat(Qt::PlainText);
  const QPushButton* yes = question.addButton(tr("Connect"), QMessageBox::AcceptRole);
  question.exec();
  if (question.clickedButton() == static_cast<const QAbstractButton*>(yes))
    parts_.supervisor.open_remote(link.file);
}

void LinkController::refuse(const QString& why) {
  QMessageBox box(QMessageBox::Information, tr("A link to NeuroShard"), why, QMessageBox::Close,
                  &parts_.window);
  box.setObjectName("linkQuestion");
  box.setTextFormat(Qt::PlainText);
  box.exec();
}

// The core's program reads the invitation, so that there is one reader for it.
void LinkController::read_invitation(const QString& invitation, const JoinPlace& place) {
  parts_.commands.run(this, {"network", "show", invitation, "--json"}, {},
                      [this, invitation, place](const ui::CommandOutcome& outcome) {
                        const QJsonObject profile = QJsonDocument::fromJson(outcome.out).object();
                        if (outcome.ok() && !profile.isEmpty())
                          return ask_to_join(invitation, profile, place);
                        Q_EMIT failed(tr("NeuroShard can't read the invitation"),
                                      ui::error_of_program(outcome.err));
                        if (!place.folder.isEmpty()) Q_EMIT not_joined(place);
                      });
}

namespace {

// Empty: the network has no rounds.
QString round_words(const QJsonObject& round) {
  if (round.isEmpty()) return {};
  const auto bytes = [&](const char* what) {
    return ui::Format::bytes(static_cast<std::uint64_t>(round[QLatin1String(what)].toInteger()));
  };
  return LinkController::tr("A round of %L1 members: at most %2 written to the disk, %3 sent, %4 received\n")
      .arg(round["members"].toInteger())
      .arg(bytes("written_bytes"), bytes("sent_bytes"), bytes("received_bytes"));
}

// Empty: each member has the whole model.
QString part_words(const QJsonArray& parts) {
  if (parts.isEmpty()) return {};
  return LinkController::tr(
             "Each member holds one of %L1 parts of the model. The network chooses this computer's.\n")
      .arg(parts.size());
}

}  // namespace

void LinkController::ask_to_join(const QString& invitation, const QJsonObject& profile,
                                 const JoinPlace& place) {
  if (!place.folder.isEmpty()) {
    if (agrees_to_join(profile, place.folder, {})) return join(invitation, place);
    Q_EMIT not_joined(place);
    return;
  }
  const JoinPlace own{default_data_ + "-" + profile["consensus"].toObject()["name"].toString(), {}};
  const QString remark =
      tr("Your current data stays as it is. To return to it, choose “Use another data folder…”.");
  if (agrees_to_join(profile, own.folder, remark)) look_and_join(invitation, own);
}

bool LinkController::agrees_to_join(const QJsonObject& profile, const QString& folder,
                                    const QString& remark) {
  const QJsonObject consensus = profile["consensus"].toObject();
  const QString name = consensus["name"].toString();
  const QString publisher = consensus["publisher_key"].toString();
  QMessageBox question(
      QMessageBox::Question, tr("Join the network “%1”?").arg(name),
      tr("A link invites this computer to the network “%1”. Join only if you know the sender.\n\n"
         "Network: %2\nModel: %L3 parameters\nPublisher: %4\nData folder: %5\n%6\n%7")
          .arg(name, profile["network_id"].toString())
          .arg(profile["parameters"].toInteger())
          .arg(publisher == "none" ? tr("none; nobody vouches for its addresses") : publisher, folder,
               part_words(profile["parts"].toArray()) + round_words(profile["round"].toObject()), remark),
      QMessageBox::Cancel, &parts_.window);
  question.setObjectName("linkQuestion");
  question.setTextFormat(Qt::PlainText);
  const QPushButton* yes = question.addButton(tr("Join"), QMessageBox::AcceptRole);
  question.setDefaultButton(QMessageBox::Cancel);
  question.exec();
  return question.clickedButton() == static_cast<const QAbstractButton*>(yes);
}

// A node that was in the network before goes on with its wallet.
void LinkController::look_and_join(const QString& invitation, const JoinPlace& place) {
  parts_.commands.look_at(this, place.folder, [this, invitation, place](const ui::FolderInfo& info) {
    if (!info.usable) {
      Q_EMIT failed(tr("NeuroShard can't join the network"),
                    tr("The data folder %1 can't be used. %2").arg(place.folder, info.problem));
      return;
    }
    if (info.in_use && !info.wallet_id.isEmpty()) return join(invitation, place);
    Q_EMIT setup_wanted(invitation, place.folder, info);
  });
}

void LinkController::join(const QString& invitation, const JoinPlace& place) {
  parts_.data.remember_choice(place.folder, place.text_folder);
  LaunchRequest request;
  request.data_directory = place.folder;
  request.text_folder = place.text_folder;
  request.invitation = invitation;
  parts_.supervisor.move_to(request);
}

void LinkController::choose_control_file() {
  const QString file =
      QFileDialog::getOpenFileName(&parts_.window, tr("Open the control file of the other computer"),
                                   QString(), tr("Control files (*.json);;All files (*)"));
  if (!file.isEmpty()) parts_.supervisor.open_remote(file);
}

}  // namespace neuroshard::gui
