#include "app/gui/data_controller.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <utility>

#include "ui/widgets/banner.h"

namespace neuroshard::gui {

DataController::DataController(Parts parts, DataPlaces places) : parts_(parts), places_(std::move(places)) {}

DataChoice DataController::choice() const {
  if (is_named()) return {{}, {}, QDir::cleanPath(QDir().absoluteFilePath(places_.argument))};
  return {parts_.config.data_directory(), parts_.config.instance(), places_.default_data};
}

void DataController::start() {
  starting_ = true;
  look();
}

void DataController::look() {
  if (looking_) return;
  looking_ = true;
  parts_.background.run(
      this, [choice = choice()] { return look_for_data(choice); },
      [this](const DataLocation& location) {
        looking_ = false;
        on_found(location);
      });
}

void DataController::on_found(const DataLocation& location) {
  if (ended_ || parts_.supervisor.status().remote) return;
  const bool starting = std::exchange(starting_, false);
  switch (location.state) {
    case DataState::FirstRun:
      if (starting) Q_EMIT first_run();
      return;
    case DataState::Missing: return show_missing(location);
    case DataState::Ready: break;
  }
  if (missing_) {
    forget_missing();
    Q_EMIT missing_changed();
  }
  if (parts_.supervisor.status().phase == CorePhase::Closed) parts_.supervisor.open(launch_of(location.path));
}

LaunchRequest DataController::launch_of(const QString& path) const {
  // The text was chosen for that folder only; a core on another one would keep it for good.
  const bool chosen = path == parts_.config.data_directory();
  return launch_of(path, chosen ? parts_.config.text_folder() : QString());
}

LaunchRequest DataController::launch_of(const QString& path, const QString& text_folder) const {
  LaunchRequest request;
  request.data_directory = path;
  // A folder that is gone is left out: the core has read it before.
  QString text = text_folder;
  if (!places_.text_argument.isEmpty()) text = QDir().absoluteFilePath(places_.text_argument);
  if (!text.isEmpty() && QFileInfo(text).isReadable()) request.text_folder = text;
  return request;
}

void DataController::show_missing(const DataLocation& location) {
  if (missing_) return;
  missing_ = true;
  ui::BannerContent content;
  content.tone = ui::Tone::Danger;
  content.title = tr("The data disk is missing");
  content.text = tr("NeuroShard expects its data in %1. %2 Connect the disk again; NeuroShard then continues "
                    "by itself and sets up nothing anew.")
                     .arg(location.path, location.problem);
  content.actions = {{tr("Look again"), [this] { look(); }, true},
                     {tr("Choose another folder…"), [this] { choose_other(); }, false}};
  parts_.window.show_banner(banner, content);
  parts_.notifier.add({ui::NotificationClass::Problem, content.title, content.text});
  Q_EMIT missing_changed();
}

void DataController::forget_missing() {
  missing_ = false;
  parts_.window.clear_banner(banner);
}

void DataController::check() {
  if (ended_ || parts_.supervisor.status().remote) return;
  // Nothing was chosen for all starts: nothing can be missing.
  if (is_named() || parts_.config.data_directory().isEmpty()) return;
  look();
}

void DataController::gate(const std::function<void(bool)>& allowed) {
  parts_.background.run(
      this, [choice = choice()] { return look_for_data(choice); },
      [this, allowed](const DataLocation& location) {
        const bool ready = location.state != DataState::Missing;
        allowed(ready);
        if (!ready && !parts_.supervisor.status().remote) show_missing(location);
      });
}

void DataController::choose_other() {
  const QString folder = QFileDialog::getExistingDirectory(
      &parts_.window, tr("Choose the folder with NeuroShard's data"), places_.default_data);
  if (folder.isEmpty()) return;
  parts_.background.run(
      this,
      [folder] {
        return look_for_data({{}, {}, folder});
      },
      [this, folder](const DataLocation& location) { use(folder, location); });
}

void DataController::use(const QString& folder, const DataLocation& location) {
  if (location.state != DataState::Ready) {
    Q_EMIT failed(
        tr("NeuroShard can't use that folder"),
        tr("%1 holds no NeuroShard data. To start with new data there, choose “Set up again…”.").arg(folder));
    return;
  }
  const QString chosen = QDir::cleanPath(folder);
  if (chosen != this->folder()) places_.text_argument.clear();
  if (!is_named()) {
    if (chosen != parts_.config.data_directory()) parts_.config.set_text_folder({});
    parts_.config.set_data_directory(chosen, {});
  }
  if (missing_) forget_missing();
  // The supervisor ends a core that the app started: two would share the machine.
  parts_.supervisor.move_to(launch_of(chosen));
}

void DataController::remember_choice(const QString& folder, const QString& text_folder) {
  if (is_named()) return;
  if (folder != parts_.config.data_directory()) parts_.config.set_data_directory(folder, {});
  parts_.config.set_text_folder(text_folder);
}

void DataController::remember(const node::Snapshot& snapshot) {
  const CoreStatus& status = parts_.supervisor.status();
  // A core that ends reports until its end; another folder may be chosen by then.
  if (is_named() || status.remote || status.phase != CorePhase::Running) return;
  const QString instance = QString::fromStdString(snapshot.identity.instance_id);
  const QString path = QString::fromStdString(snapshot.program.data_directory);
  if (instance.isEmpty() || path.isEmpty()) return;
  if (parts_.config.instance() == instance && parts_.config.data_directory() == path) return;
  parts_.config.set_data_directory(path, instance);
}

void DataController::end() {
  ended_ = true;
}

}  // namespace neuroshard::gui
