// The application: which data directory is used, the disk that is missing, and the set-up assistant.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>

#include "app/gui/application.h"
#include "ui/widgets/banner.h"
#include "ui/wizard/setup_dialog.h"

namespace neuroshard::gui {
namespace {

constexpr const char* data_banner = "data";

}  // namespace

DataChoice Application::data_choice() const {
  // The one of the command line is used as it is and not remembered.
  if (!arguments_.data_directory.isEmpty())
    return {{}, {}, QDir::cleanPath(QDir().absoluteFilePath(arguments_.data_directory))};
  return {config_.data_directory(), config_.instance(), places_.default_data};
}

void Application::look_for_data_now() {
  if (looking_for_data_) return;
  looking_for_data_ = true;
  background_.run(
      this, [choice = data_choice()] { return look_for_data(choice); },
      [this](const DataLocation& location) {
        looking_for_data_ = false;
        on_data(location);
      });
}

void Application::on_data(const DataLocation& location) {
  if (quitting_ || supervisor_->status().remote) return;
  switch (location.state) {
    case DataState::FirstRun:
      if (!setup_) open_setup();
      return;
    case DataState::Missing: return show_missing(location);
    case DataState::Ready: break;
  }
  if (data_missing_) {
    data_missing_ = false;
    window_->clear_banner(data_banner);
    on_core_status();
  }
  if (supervisor_->status().phase == CorePhase::Closed) supervisor_->open(launch_of(location.path));
}

LaunchRequest Application::launch_of(const QString& path) const {
  LaunchRequest request;
  request.data_directory = path;
  // A folder that is gone is left out: the core has read it before.
  QString text = config_.text_folder();
  if (!arguments_.text.isEmpty()) text = QDir().absoluteFilePath(arguments_.text);
  if (!text.isEmpty() && QFileInfo(text).isReadable()) request.text_folder = text;
  return request;
}

void Application::show_missing(const DataLocation& location) {
  if (data_missing_) return;
  data_missing_ = true;
  ui::BannerContent content;
  content.tone = ui::Tone::Danger;
  content.title = tr("The data disk is missing");
  content.text = tr("NeuroShard's data is expected in %1. %2 Connect the disk again, and it goes on by "
                    "itself. Nothing is "
                    "set up anew.")
                     .arg(location.path, location.problem);
  content.actions = {{tr("Look again"), [this] { look_for_data_now(); }, true},
                     {tr("Choose another folder…"), [this] { choose_other_data(); }, false}};
  window_->show_banner(data_banner, content);
  notifier_->add({ui::NotificationClass::Problem, content.title, content.text});
  on_core_status();
}

// While a core runs, its disk may go; while the disk is missing, it may come back.
void Application::check_data() {
  if (quitting_ || setup_ || supervisor_->status().remote) return;
  if (config_.data_directory().isEmpty()) return;  // nothing was chosen: nothing can be missing
  look_for_data_now();
}

// Before a core is started: it would make a new data directory where a disk should be.
void Application::gate(const std::function<void(bool)>& allowed) {
  background_.run(
      this, [choice = data_choice()] { return look_for_data(choice); },
      [this, allowed](const DataLocation& location) {
        const bool ready = location.state != DataState::Missing;
        allowed(ready);
        if (!ready) show_missing(location);
      });
}

void Application::choose_other_data() {
  const QString folder = QFileDialog::getExistingDirectory(
      window_.get(), tr("The folder with NeuroShard's data"), places_.default_data);
  if (folder.isEmpty()) return;
  background_.run(
      this,
      [folder] {
        return look_for_data({{}, {}, folder});
      },
      [this, folder](const DataLocation& location) {
        if (location.state != DataState::Ready) {
          return show_error(
              tr("Using that folder"),
              tr("NeuroShard's data is not in %1. To begin there anew, choose “Set up again…”.").arg(folder));
        }
        config_.set_data_directory(QDir::cleanPath(folder), {});
        if (data_missing_) {
          data_missing_ = false;
          window_->clear_banner(data_banner);
        }
        // A core of ours ends first: two would share the machine.
        supervisor_->move_to(launch_of(location.path));
      });
}

void Application::remember_instance() {
  const auto snapshot = bridge_->snapshot();
  if (!snapshot || !arguments_.data_directory.isEmpty() || supervisor_->status().remote) return;
  const QString instance = QString::fromStdString(snapshot->identity.instance_id);
  const QString path = QString::fromStdString(snapshot->program.data_directory);
  if (instance.isEmpty() || path.isEmpty()) return;
  if (config_.instance() == instance && config_.data_directory() == path) return;
  config_.set_data_directory(path, instance);
}

void Application::open_setup() {
  if (setup_) {
    setup_->raise();
    return setup_->activateWindow();
  }
  ui::SetupDraft draft;
  draft.theme = preferences_->theme();
  draft.language = preferences_->language();
  draft.folder = config_.data_directory();
  if (draft.folder.isEmpty()) draft.folder = data_choice().fallback;
  draft.text_folder = config_.text_folder();
  draft.autostart = autostart_.enabled();
  draft.again = !config_.data_directory().isEmpty();
  setup_ = new ui::SetupDialog(*setup_services_, draft, window_.get());
  setup_->setAttribute(Qt::WA_DeleteOnClose);
  setup_->setWindowModality(Qt::WindowModal);
  connect(setup_, &ui::SetupDialog::theme_chosen, theme_.get(), &ui::Theme::choose);
  connect(setup_, &QDialog::accepted, this, &Application::after_setup);
  connect(setup_, &QDialog::rejected, this, [this] {
    theme_->choose(preferences_->theme());
    if (!config_.data_directory().isEmpty() || supervisor_->status().phase != CorePhase::Closed) return;
    ui::BannerContent content;
    content.title = tr("NeuroShard is not set up yet");
    content.text = tr("Five short questions, and it begins. Nothing runs until then.");
    content.actions = {{tr("Set up"), [this] { open_setup(); }, true}};
    window_->show_banner(data_banner, content);
  });
  show_window();
  setup_->open();
}

void Application::after_setup() {
  const ui::SetupDraft& draft = setup_->draft();
  preferences_->set_theme(draft.theme);
  preferences_->set_language(draft.language);
  preferences_->set_autostart(draft.autostart);
  apply_autostart();
  window_->clear_banner(data_banner);
  data_missing_ = false;
  if (!draft.invitation.isEmpty())  // asks, once the assistant is gone
    QMetaObject::invokeMethod(
        this, [this, link = draft.invitation] { handle_link(link); }, Qt::QueuedConnection);
  const bool same =
      draft.folder == config_.data_directory() && supervisor_->status().phase == CorePhase::Running;
  const bool new_text = draft.text_folder != config_.text_folder() && !draft.text_folder.isEmpty();
  config_.set_text_folder(draft.text_folder);
  if (!same) {
    if (draft.folder != config_.data_directory()) config_.set_data_directory(draft.folder, {});
    return supervisor_->move_to(launch_of(draft.folder));
  }
  if (!new_text) return;
  node::TrainingPlan plan;
  plan.text_path = draft.text_folder.toStdString();
  bridge_->run(
      this, [plan](node::Node& node) { return node.start_training(plan); },
      [this](const Expected<node::CommandResult>& outcome) {
        // It trains already: the text is read at the next start of the core.
        if (!outcome.ok() && outcome.error().code != ErrorCode::Busy)
          show_error(tr("Reading the new text"), QString::fromStdString(outcome.error().describe()));
      });
}

}  // namespace neuroshard::gui
