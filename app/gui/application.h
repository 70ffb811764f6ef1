// The app as a whole: makes the parts, connects them, and starts and ends the program. The parts: ui/ has the
// window, CoreSupervisor the life of the core, WindowController the window on the desktop, DataController the
// data directory, LinkController links and invitations, TextController text that is added, ReleaseController
// newer versions, NewsController what is new.
//
// Threads: ui.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <memory>

#include "app/gui/arguments.h"
#include "app/gui/autostart.h"
#include "app/gui/background.h"
#include "app/gui/core_supervisor.h"
#include "app/gui/data_controller.h"
#include "app/gui/event_notices.h"
#include "app/gui/link_controller.h"
#include "app/gui/machine_setup.h"
#include "app/gui/news_controller.h"
#include "app/gui/notifier.h"
#include "app/gui/process_launcher.h"
#include "app/gui/release_controller.h"
#include "app/gui/remote_core_link.h"
#include "app/gui/session_sensors.h"
#include "app/gui/text_controller.h"
#include "app/gui/user_config.h"
#include "app/gui/window_controller.h"
#include "ui/bridge/bridge.h"
#include "ui/models/preferences.h"
#include "ui/models/release_view.h"
#include "ui/theme/theme.h"
#include "ui/tray/tray.h"
#include "ui/window/main_window.h"

class QApplication;
class QProgressDialog;

namespace neuroshard::ui {
class SetupDialog;
struct SetupDraft;
}  // namespace neuroshard::ui

namespace neuroshard::gui {

// Where things are; tests choose their own.
struct ApplicationPlaces {
  QString program_folder;  // neuroshardd is beside the app
  QString app_program;     // for the autostart entry
  QString config_file;
  QString autostart_folder;
  QString default_data;       // when nothing was chosen
  QString runtime_directory;  // of control.json
  QString version;
  QString releases_url, releases_key;  // where this build looks for releases; empty: nowhere
};

class Application final : public QObject {
  Q_OBJECT
 public:
  Application(QApplication& application, ApplicationPlaces places, Arguments arguments, const Clock& clock,
              SessionSensorList sensors, SupervisorLimits limits = {}, ReleaseServices releases = {});
  ~Application() override;

  // Shows the window (or only the tray) and begins to look for the data.
  void start();
  static constexpr std::chrono::seconds data_period{3};

  // The command line of a second start.
  void called(const Arguments& arguments);
  // Stops the core that this app started; finished() follows within 15 seconds. If the core still writes then
  // and a window is open, the window says so for `farewell` more. SIGTERM, logout and Quit end here.
  void quit();
  static constexpr std::chrono::seconds farewell{5};

  void open_setup();
  void show_about();
  void handle_link(const QString& text);

  ui::MainWindow& window() { return *window_; }
  ui::Tray& tray() { return *tray_; }
  ui::Bridge& bridge() { return *bridge_; }
  CoreSupervisor& supervisor() { return *supervisor_; }

 Q_SIGNALS:
  void quitting();  // from now on no call of a second start is followed
  void finished(int code);

 private:
  ui::Page::Context page_context(const QString& core_program);
  void build_menu();
  void connect_parts();
  std::optional<ui::CoreLife> core_life() const;
  void on_core_status();
  void show_elsewhere();
  void on_attached(const std::shared_ptr<node::Node>& node);
  void on_event(const node::Event& event);
  bool is_set_up() const;
  void make_setup(const ui::SetupDraft& draft);
  void set_up_to_join(const QString& invitation, const QString& folder, const ui::FolderInfo& info);
  void after_setup();
  void run_in(const QString& folder, const QString& text_folder);
  void leave_core_behind();
  void leave();
  void apply_autostart();
  void show_error(const QString& title, const QString& why);

  QApplication& application_;
  const ApplicationPlaces places_;
  const Arguments arguments_;
  const Clock& clock_;

  UserConfig config_;
  Background background_;
  std::unique_ptr<ui::Preferences> preferences_;
  ui::ReleaseView release_view_;
  std::unique_ptr<ui::Theme> theme_;
  std::unique_ptr<ui::Bridge> bridge_;
  std::unique_ptr<RemoteCoreLink> link_;
  std::unique_ptr<ProcessLauncher> launcher_;
  std::unique_ptr<CoreSupervisor> supervisor_;
  std::unique_ptr<ui::MainWindow> window_;
  std::unique_ptr<ui::Tray> tray_;
  std::unique_ptr<Notifier> notifier_;
  EventNotices notices_;
  std::unique_ptr<SessionReporter> sensors_;
  std::unique_ptr<MachineSetup> setup_services_;
  std::unique_ptr<WindowController> window_controller_;
  std::unique_ptr<DataController> data_;
  std::unique_ptr<TextController> texts_;
  std::unique_ptr<LinkController> links_;
  std::unique_ptr<ReleaseController> releases_;
  std::unique_ptr<NewsController> news_;
  Autostart autostart_;

  QPointer<ui::SetupDialog> setup_;
  QPointer<QProgressDialog> stopping_;
  QTimer tick_;        // of the supervisor and the notifier
  QTimer data_timer_;  // looks for a disk that is missing, and whether it still is there
  std::weak_ptr<node::Node> node_;
  QAction* here_ = nullptr;
  CorePhase notified_ = CorePhase::Closed;  // of the last notification
  QString elsewhere_data_;         // of the core on another computer that the banner names; empty: no banner
  bool autostart_wanted_ = false;  // the preference that the entry last followed, or gave
  bool quitting_ = false, left_ = false;
};

}  // namespace neuroshard::gui
