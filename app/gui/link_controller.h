// neuroshard: links and control files: shows the user what a link asks for, and follows it after a yes.
// Nothing changes before that.
//
// Threads: ui.
#pragma once

#include <QJsonArray>
#include <QJsonObject>
#include <QObject>

#include "app/gui/background.h"
#include "app/gui/core_supervisor.h"
#include "app/gui/link.h"
#include "app/gui/user_config.h"
#include "ui/window/main_window.h"
#include "ui/wizard/setup_services.h"

namespace neuroshard::gui {

class LinkController final : public QObject {
  Q_OBJECT
 public:
  struct Parts {  // all outlive it
    Background& background;
    UserConfig& config;
    CoreSupervisor& supervisor;
    ui::SetupServices& commands;
    ui::MainWindow& window;
  };
  // The data of a joined network goes beside `default_data`.
  LinkController(Parts parts, QString default_data);

  void handle(const QString& text);
  // Asks for a control file and connects to the core that it names.
  void choose_control_file();

 Q_SIGNALS:
  void failed(const QString& what, const QString& why);

 private:
  void ask_to_attach(const AttachLink& link);
  void read_invitation(const QString& text);
  void ask_to_join(const QString& text, const QJsonObject& profile);
  void join(const QString& text, const QString& folder);
  void refuse(const QString& why);

  const Parts parts_;
  const QString default_data_;
};

}  // namespace neuroshard::gui
