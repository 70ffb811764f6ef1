// neuroshard: links and control files: shows the user what a link asks for, and follows it after a yes.
// Nothing changes before that.
//
// Threads: ui.
#pragma once

#include <QJsonArray>
#include <QJsonObject>
#include <QObject>

#include "app/gui/core_supervisor.h"
#include "app/gui/data_controller.h"
#include "app/gui/link.h"
#include "ui/window/main_window.h"
#include "ui/wizard/setup_services.h"

namespace neuroshard::gui {

// Where the node of an invitation works.
struct JoinPlace {
  QString folder;       // the assistant has set it up; empty = a folder of the network's own
  QString text_folder;  // the user's text; empty = none
};

class LinkController final : public QObject {
  Q_OBJECT
 public:
  struct Parts {  // all outlive it
    DataController& data;
    CoreSupervisor& supervisor;
    ui::SetupServices& commands;
    ui::MainWindow& window;
  };
  // The data of a joined network goes beside `default_data`.
  LinkController(Parts parts, QString default_data);

  // place: for an invitation that the user gave to the assistant.
  void handle(const QString& text, const JoinPlace& place = {});
  // The user has agreed, and the folder has a wallet.
  void join(const QString& invitation, const JoinPlace& place);
  // Asks for a control file and connects to the core that it names.
  void choose_control_file();

 Q_SIGNALS:
  void failed(const QString& what, const QString& why);
  // The user has agreed to join in this folder, and it is not set up.
  void setup_wanted(const QString& invitation, const QString& folder, const neuroshard::ui::FolderInfo& info);
  // The node of the folder that the assistant has set up joins no network.
  void not_joined(const neuroshard::gui::JoinPlace& place);

 private:
  void ask_to_attach(const AttachLink& link);
  void read_invitation(const QString& invitation, const JoinPlace& place);
  void ask_to_join(const QString& invitation, const QJsonObject& profile, const JoinPlace& place);
  bool agrees_to_join(const QJsonObject& profile, const QString& folder, const QString& remark);
  void look_and_join(const QString& invitation, const JoinPlace& place);
  void refuse(const QString& why);

  const Parts parts_;
  const QString default_data_;
};

}  // namespace neuroshard::gui
