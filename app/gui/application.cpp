#include "app/gui/application.h"

#include <QApplication>
#include <QDir>
#include <QMenu>
#include <QProgressDialog>
#include <QSessionManager>
#include <utility>

#include "app/gui/core_words.h"
#include "app/gui/desktop_tray_host.h"
#include "ui/pages/about_dialog.h"
#include "ui/widgets/banner.h"
#include "ui/wizard/setup_dialog.h"

namespace neuroshard::gui {
namespace {

constexpr std::chrono::milliseconds tick_period{500};
constexpr const char* life_banner = "core_life";  // while a core answers
constexpr const char* core_banner = "core";  // while none does: instead of what the window would say itself
constexpr const char* elsewhere_banner = "elsewhere";

QString core_output_file(const ApplicationPlaces& places) {
  return places.runtime_directory + "/core-output.txt";
}

}  // namespace

Application::Application(QApplication& application, ApplicationPlaces places, Arguments arguments,
                         const Clock& clock, SessionSensorList sensors, SupervisorLimits limits,
                         ReleaseServices releases)
    : application_(application),
      places_(std::move(places)),
      arguments_(std::move(arguments)),
      clock_(clock),
      config_(places_.config_file),
      background_("ns-app"),
      autostart_(places_.autostart_folder, places_.app_program) {
  const QString core_program = find_beside(places_.program_folder, "neuroshardd");
  preferences_ = std::make_unique<ui::Preferences>(places_.config_file);
  theme_ = std::make_unique<ui::Theme>(std::make_unique<ui::DesktopSchemeSource>());
  theme_->choose(preferences_->theme());
  theme_->apply(application_);
  bridge_ = std::make_unique<ui::Bridge>();
  link_ = std::make_unique<RemoteCoreLink>(
      RemoteCoreLinkOptions{places_.runtime_directory, "neuroshard (desktop app)", places_.version});
  launcher_ = std::make_unique<ProcessLauncher>(core_program, core_output_file(places_));
  supervisor_ = std::make_unique<CoreSupervisor>(*link_, *launcher_, clock_, limits);
  supervisor_->remember({config_.started_pid(), config_.started_at()});
  supervisor_->set_gate([this](const std::function<void(bool)>& allowed) { data_->gate(allowed); });
  window_ = std::make_unique<ui::MainWindow>(page_context(core_program));
  tray_ = std::make_unique<ui::Tray>(*bridge_, *theme_, clock_, std::make_unique<DesktopTrayHost>());
  notifier_ = std::make_unique<Notifier>(
      clock_, [this](ui::NotificationClass about) { return preferences_->notify(about); },
      [this](const Notification& one) {
        tray_->notify(one.title, one.text, one.about == ui::NotificationClass::Problem);
      });
  sensors_ =
      std::make_unique<SessionReporter>(std::move(sensors), [this](const node::SessionSensors& values) {
        if (const auto node = node_.lock())
          static_cast<void>(node->report_session(values).ok());  // the next one comes soon
      });
  setup_services_ = std::make_unique<MachineSetup>(core_program, places_.default_data, background_);
  window_controller_ = std::make_unique<WindowController>(*window_, *tray_, config_, *preferences_);
  data_ = std::make_unique<DataController>(
      DataController::Parts{background_, config_, *supervisor_, *window_, *notifier_},
      DataPlaces{places_.default_data, arguments_.data_directory, arguments_.text});
  texts_ = std::make_unique<TextController>(*bridge_, *supervisor_);
  links_ = std::make_unique<LinkController>(
      LinkController::Parts{*data_, *supervisor_, *setup_services_, *window_}, places_.default_data);
  releases_ = std::make_unique<ReleaseController>(
      ReleaseController::Parts{config_, *preferences_, release_view_, *window_, clock_},
      ReleasePlace{places_.releases_url, places_.releases_key, places_.version,
                   places_.program_folder + "/neuroshard"},
      std::move(releases));
  news_ = std::make_unique<NewsController>(config_, *window_, places_.version);
  build_menu();
  connect_parts();
}

Application::~Application() {
  bridge_->attach(nullptr);
  link_->close();
}

ui::Page::Context Application::page_context(const QString& core_program) {
  ui::Page::Context context{*bridge_, *theme_, clock_};
  context.preferences = preferences_.get();
  context.core_program = core_program;
  context.core_life = [this] { return core_life(); };
  context.elsewhere = [this] { return supervisor_->status().remote; };
  context.releases = &release_view_;
  context.work_ended = [this](const QString& title, const QString& text) {
    notifier_->add({ui::NotificationClass::Finished, title, text});
  };
  return context;
}

void Application::connect_parts() {
  connect(supervisor_.get(), &CoreSupervisor::status_changed, this, &Application::on_core_status);
  connect(supervisor_.get(), &CoreSupervisor::attached, this, &Application::on_attached);
  connect(
      supervisor_.get(), &CoreSupervisor::started, this,
      [this](const platform::ProcessIdentity& process) { config_.set_started(process.pid, process.start); });
  connect(supervisor_.get(), &CoreSupervisor::stopped, this, [this](bool clean) {
    if (clean) return leave();
    leave_core_behind();
  });
  connect(bridge_.get(), &ui::Bridge::event_received, this, &Application::on_event);
  connect(bridge_.get(), &ui::Bridge::snapshot_changed, this, [this] {
    const auto snapshot = bridge_->snapshot();
    if (snapshot && bridge_->attached()) data_->remember(*snapshot);
  });
  connect(bridge_.get(), &ui::Bridge::snapshot_changed, this, &Application::show_elsewhere);
  connect(bridge_.get(), &ui::Bridge::attached_changed, this, &Application::show_elsewhere);
  connect(tray_.get(), &ui::Tray::quit_requested, this, &Application::quit);
  connect(tray_.get(), &ui::Tray::command_failed, this,
          [this](const QString& what, const QString& why) { show_error(tr("“%1” failed").arg(what), why); });
  connect(window_controller_.get(), &WindowController::quit_requested, this, &Application::quit);
  connect(data_.get(), &DataController::first_run, this, [this] {
    if (!setup_) open_setup();
  });
  connect(data_.get(), &DataController::missing_changed, this, &Application::on_core_status);
  connect(data_.get(), &DataController::failed, this, &Application::show_error);
  connect(links_.get(), &LinkController::failed, this, &Application::show_error);
  connect(links_.get(), &LinkController::setup_wanted, this, &Application::set_up_to_join);
  connect(links_.get(), &LinkController::not_joined, this,
          [this](const JoinPlace& place) { run_in(place.folder, place.text_folder); });
  connect(texts_.get(), &TextController::failed, this, &Application::show_error);
  connect(preferences_.get(), &ui::Preferences::changed, this, [this] {
    theme_->choose(preferences_->theme());
    apply_autostart();
  });
  connect(
      &application_, &QGuiApplication::commitDataRequest, this, [this] { supervisor_->quit(); },
      Qt::DirectConnection);
  tray_->set_core_life(core_life());  // nothing runs yet: no alarm
  window_->may_close = [this] {
    if (!quitting_) window_controller_->close_asked();
    return quitting_;
  };
  connect(&tick_, &QTimer::timeout, this, [this] {
    supervisor_->tick();
    notifier_->tick();
    releases_->tick();
    news_->tick();
  });
  tick_.start(tick_period);
  connect(&data_timer_, &QTimer::timeout, this, [this] {
    if (!setup_) data_->check();
  });
  data_timer_.start(data_period);
}

void Application::build_menu() {
  QMenu* menu = window_->menu();
  menu->addSeparator();
  menu->addAction(tr("Set up again…"), this, &Application::open_setup)->setObjectName("actionSetup");
  menu->addAction(tr("Use another data folder…"), data_.get(), &DataController::choose_other)
      ->setObjectName("actionData");
  menu->addAction(tr("Connect to another computer…"), links_.get(), &LinkController::choose_control_file)
      ->setObjectName("actionElsewhere");
  here_ = menu->addAction(tr("Return to this computer"), this, [this] {
    supervisor_->close();
    data_->look();
  });
  here_->setVisible(false);
  menu->addAction(tr("About NeuroShard"), this, &Application::show_about)->setObjectName("actionAbout");
  menu->addSeparator();
  QAction* quit_action = menu->addAction(tr("Quit"), this, &Application::quit);
  quit_action->setObjectName("actionQuit");
  quit_action->setShortcut(QKeySequence::Quit);
  window_->addAction(quit_action);
}

void Application::show_about() {
  const auto snapshot = bridge_->snapshot();
  const QString core = snapshot != nullptr && bridge_->attached()
                           ? QString::fromStdString(snapshot->program.version)
                           : QString();
  auto* dialog = new ui::AboutDialog(*theme_, places_.version, core, window_.get());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &ui::AboutDialog::news_wanted, this, [this, dialog] {
    dialog->close();  // one at a time
    news_->show_all();
  });
  dialog->open();
}

void Application::start() {
  preferences_->set_autostart(autostart_.enabled());
  autostart_wanted_ = preferences_->autostart();
  if (const auto repaired = autostart_.repair(); !repaired.ok())
    show_error(tr("NeuroShard can't start with the session any more"),
               QString::fromStdString(repaired.error().describe()));
  window_controller_->begin(arguments_.minimized);
  if (!arguments_.text.isEmpty()) texts_->add(QDir().absoluteFilePath(arguments_.text));
  if (arguments_.setup) {
    open_setup();
  } else {
    data_->start();
  }
  // A link asks a question, which needs the window.
  if (!arguments_.link.isEmpty())
    QMetaObject::invokeMethod(
        this, [this] { handle_link(arguments_.link); }, Qt::QueuedConnection);
}

void Application::called(const Arguments& arguments) {
  if (arguments.quit) return quit();
  if (!arguments.minimized) window_controller_->show();
  if (arguments.setup) open_setup();
  if (!arguments.text.isEmpty()) texts_->add(QDir().absoluteFilePath(arguments.text));
  if (!arguments.link.isEmpty()) handle_link(arguments.link);
}

void Application::handle_link(const QString& text) {
  window_controller_->show();
  links_->handle(text);
}

void Application::quit() {
  if (quitting_) return;
  quitting_ = true;
  Q_EMIT quitting();
  data_timer_.stop();
  data_->end();
  sensors_->stop();
  supervisor_->quit();
  if (supervisor_->status().phase != CorePhase::Stopping || !window_->isVisible()) return;
  stopping_ = new QProgressDialog(
      tr("The core writes its last checkpoint…\nIf you quit now, the core finishes this and ends by itself."),
      tr("Quit now"), 0, 0, window_.get());
  stopping_->setObjectName("stopping");
  stopping_->setAttribute(Qt::WA_DeleteOnClose);
  stopping_->setWindowTitle(tr("Quitting NeuroShard"));
  stopping_->setWindowModality(Qt::WindowModal);
  stopping_->setMinimumDuration(0);
  connect(stopping_, &QProgressDialog::canceled, this, [this] { supervisor_->give_up(); });
  stopping_->show();
}

// The core still writes. The user learns it, instead of finding a process that seems to hang.
void Application::leave_core_behind() {
  const CoreWords::Farewell words = CoreWords::farewell();
  tray_->notify(words.title, words.text, false);
  // Without the dialog, or after "Quit now", nothing is left to read.
  if (stopping_ == nullptr || !stopping_->isVisible()) return leave();
  stopping_->disconnect(this);
  stopping_->setLabelText(words.text);
  stopping_->setCancelButtonText(tr("Close"));
  connect(stopping_, &QProgressDialog::canceled, this, &Application::leave);
  QTimer::singleShot(farewell, this, &Application::leave);
}

void Application::leave() {
  if (std::exchange(left_, true)) return;
  // The user may have deleted the former program since the start.
  static_cast<void>(autostart_.repair().ok());
  window_controller_->save();
  config_.sync();
  Q_EMIT finished(0);
}

std::optional<ui::CoreLife> Application::core_life() const {
  if (data_ && data_->missing())  // the window asks while it is made, before data_
    return ui::CoreLife{ui::DisplayState::Error, tr("Needs attention"), tr("the data disk is missing")};
  return CoreWords::life(supervisor_->status());
}

// Runs with every snapshot; a banner that is there already is left alone.
void Application::show_elsewhere() {
  const auto snapshot = bridge_->snapshot();
  const bool shown = supervisor_->status().remote && bridge_->attached() && snapshot;
  const QString data = shown ? QString::fromStdString(snapshot->program.data_directory) : QString();
  if (data == elsewhere_data_) return;
  elsewhere_data_ = data;
  if (!shown) return window_->clear_banner(elsewhere_banner);
  window_->show_banner(elsewhere_banner, CoreWords::elsewhere(data, supervisor_->status().may_steer,
                                                              [this] { here_->trigger(); }));
}

void Application::on_core_status() {
  const CoreStatus& status = supervisor_->status();
  // The disk of this computer says nothing about another one; "Return to this computer" looks for it again.
  if (status.remote && data_->missing()) data_->forget_missing();
  const CoreActions actions{[this] { supervisor_->start(); }, [this] { supervisor_->restart(false); },
                            [this] { supervisor_->restart(false); }, [this] { here_->trigger(); },
                            [this] { supervisor_->dismiss_crashes(); }};
  tray_->set_core_life(core_life());
  window_->core_life_changed();
  here_->setVisible(status.remote);
  const bool running = status.phase == CorePhase::Running;
  window_->clear_banner(running ? core_banner : life_banner);
  if (data_->missing()) return window_->clear_banner(core_banner);
  const auto content = CoreWords::banner(status, actions);
  if (content) {
    window_->show_banner(running ? life_banner : core_banner, *content);
  } else {
    window_->clear_banner(running ? life_banner : core_banner);
  }
  const bool bad = status.phase == CorePhase::Waiting || status.phase == CorePhase::Failed ||
                   status.phase == CorePhase::WrongVersion ||
                   (status.phase == CorePhase::Stopped && status.crashed);
  if (bad && content && notified_ != status.phase)
    notifier_->add({ui::NotificationClass::Problem, content->title, content->text});
  notified_ = status.phase;
}

void Application::on_attached(const std::shared_ptr<node::Node>& node) {
  bridge_->attach(node, supervisor_->status().may_steer);
  node_ = node;
  if (node) texts_->attached();
  if (node && !supervisor_->status().remote) {
    sensors_->start();
  } else {
    sensors_->stop();
  }
}

void Application::on_event(const node::Event& event) {
  const auto snapshot = bridge_->snapshot();
  if (auto notice = notices_.of(event, snapshot.get(), tray_->view().status))
    notifier_->add(std::move(*notice));
}

bool Application::is_set_up() const {
  return (!data_->is_named() && !data_->folder().isEmpty()) ||
         supervisor_->status().phase != CorePhase::Closed;
}

void Application::make_setup(const ui::SetupDraft& draft) {
  setup_ = new ui::SetupDialog(*setup_services_, draft, window_.get());
  setup_->setAttribute(Qt::WA_DeleteOnClose);
  setup_->setWindowModality(Qt::WindowModal);
}

void Application::open_setup() {
  if (setup_) {
    setup_->raise();
    return setup_->activateWindow();
  }
  ui::SetupDraft draft;
  draft.theme = preferences_->theme();
  draft.language = preferences_->language();
  draft.folder = data_->folder().isEmpty() ? data_->default_folder() : data_->folder();
  if (!data_->is_named()) draft.text_folder = config_.text_folder();
  draft.autostart = autostart_.enabled();
  draft.again = !data_->is_named() && !data_->folder().isEmpty();
  make_setup(draft);
  connect(setup_, &ui::SetupDialog::theme_chosen, theme_.get(), &ui::Theme::choose);
  connect(setup_, &QDialog::accepted, this, &Application::after_setup);
  connect(setup_, &QDialog::rejected, this, [this] {
    theme_->choose(preferences_->theme());
    if (is_set_up()) return;
    ui::BannerContent content;
    content.title = tr("NeuroShard is not set up yet");
    content.text = tr("Answer five short questions to begin. Nothing runs until then.");
    content.actions = {{tr("Set up"), [this] { open_setup(); }, true}};
    window_->show_banner(DataController::banner, content);
  });
  window_controller_->show();
  setup_->open();
}

// A network's folder needs a wallet whose words are written down. Without any data yet, that is the folder of
// the first set-up.
void Application::set_up_to_join(const QString& invitation, const QString& folder,
                                 const ui::FolderInfo& info) {
  if (setup_ || !is_set_up()) {
    open_setup();
    return setup_->propose(invitation);
  }
  ui::SetupDraft draft;
  draft.folder = folder;
  draft.folder_info = info;
  draft.joining = true;
  make_setup(draft);
  connect(setup_, &QDialog::accepted, this, [this, invitation, folder] {
    data_->forget_missing();
    links_->join(invitation, {folder, {}});
  });
  window_controller_->show();
  setup_->open();
}

void Application::after_setup() {
  const ui::SetupDraft& draft = setup_->draft();
  preferences_->set_theme(draft.theme);
  preferences_->set_language(draft.language);
  apply_autostart();  // the desktop's own settings may have changed the entry
  preferences_->set_autostart(draft.autostart);
  data_->forget_missing();
  if (draft.invitation.isEmpty()) return run_in(draft.folder, draft.text_folder);
  // A folder with data keeps its network; the invited node gets one of its own.
  JoinPlace place;
  if (draft.folder_info.in_use) {
    run_in(draft.folder, draft.text_folder);
  } else {
    place = {draft.folder, draft.text_folder};  // nothing runs there before the answer
  }
  QMetaObject::invokeMethod(
      this,
      [this, invitation = draft.invitation, place] {
        window_controller_->show();
        links_->handle(invitation, place);
      },
      Qt::QueuedConnection);  // asks, after the assistant is closed
}

void Application::run_in(const QString& folder, const QString& text_folder) {
  const CoreStatus& status = supervisor_->status();
  const bool same = folder == data_->folder();
  const QString earlier_text = data_->is_named() ? QString() : config_.text_folder();
  data_->remember_choice(folder, text_folder);
  if (same && status.remote) {
    // The core of this computer may run.
    supervisor_->open(data_->launch_of(folder, text_folder));
  } else if (!same || status.phase != CorePhase::Running) {
    supervisor_->move_to(data_->launch_of(folder, text_folder));
  }
  if (!text_folder.isEmpty() && text_folder != earlier_text) texts_->add(text_folder);
}

// The entry follows a change of the preference. Otherwise the preference follows the entry, which the
// desktop's own settings switch on and off, too.
void Application::apply_autostart() {
  const bool wanted = preferences_->autostart(), entry = autostart_.enabled();
  const bool chosen = std::exchange(autostart_wanted_, wanted) != wanted;
  if (wanted == entry) return;
  if (!chosen) return preferences_->set_autostart(entry);
  if (const auto set = autostart_.set(wanted); !set.ok())
    show_error(tr("NeuroShard can't change whether it starts with the session"),
               QString::fromStdString(set.error().describe()));
}

void Application::show_error(const QString& title, const QString& why) {
  ui::BannerContent content;
  content.tone = ui::Tone::Danger;
  content.title = title;
  content.text = why;
  content.can_close = true;
  window_->show_banner("error", content);
}

}  // namespace neuroshard::gui
