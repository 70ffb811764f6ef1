// Which data directory the app uses: finds it, notices when its disk is missing and when it is back, and lets
// the user choose another one. A core starts on a directory that is there, never on the place where a missing
// disk should be.
//
// Threads: ui; the disk is read on the background thread.
#pragma once

#include <QObject>
#include <functional>

#include "app/gui/background.h"
#include "app/gui/core_supervisor.h"
#include "app/gui/data_location.h"
#include "app/gui/notifier.h"
#include "app/gui/user_config.h"
#include "ui/window/main_window.h"

namespace neuroshard::gui {

struct DataPlaces {
  QString default_data;   // when nothing was chosen
  QString argument;       // the directory of the command line; used as it is and not remembered
  QString text_argument;  // the text of the command line, for the folder of the start only
};

class DataController final : public QObject {
  Q_OBJECT
 public:
  struct Parts {  // all outlive it
    Background& background;
    UserConfig& config;
    CoreSupervisor& supervisor;
    ui::MainWindow& window;
    Notifier& notifier;
  };
  DataController(Parts parts, DataPlaces places);

  // The banner about the data.
  static constexpr const char* banner = "data";

  // The app starts: look(), and first_run() if no data was ever there.
  void start();
  // Looks for the data and, when it is there, starts or finds its core.
  void look();
  // For a timer: while a core runs, its disk may go; while the disk is missing, it may come back.
  void check();
  void choose_other();
  // Before a core starts: it would make a new data directory where a disk should be.
  void gate(const std::function<void(bool)>& allowed);
  // Keeps the identity of the running core's directory, which tells its disk from another one.
  void remember(const node::Snapshot& snapshot);
  // Keeps the folder and its text for the next starts of the app, unless the command line names this one's
  // folder.
  void remember_choice(const QString& folder, const QString& text_folder);
  // The user has set up anew, or the window shows another computer: nothing is missing any more.
  void forget_missing();
  void end();  // the app quits: no core is started from now on

  bool missing() const { return missing_; }
  // The command line names the folder: this start of the app remembers none.
  bool is_named() const { return !places_.argument.isEmpty(); }
  // Of the command line, else as it was chosen; empty = it never was.
  QString folder() const { return is_named() ? choice().fallback : parts_.config.data_directory(); }
  QString default_folder() const { return choice().fallback; }
  LaunchRequest launch_of(const QString& path) const;
  LaunchRequest launch_of(const QString& path, const QString& text_folder) const;

 Q_SIGNALS:
  void first_run();
  void missing_changed();
  void failed(const QString& what, const QString& why);

 private:
  DataChoice choice() const;
  void on_found(const DataLocation& location);
  void show_missing(const DataLocation& location);
  void use(const QString& folder, const DataLocation& location);

  const Parts parts_;
  DataPlaces places_;
  bool missing_ = false, looking_ = false, starting_ = false, ended_ = false;
};

}  // namespace neuroshard::gui
