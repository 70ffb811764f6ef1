#include "app/gui/application.h"

#include <QApplication>
#include <QMenu>
#include <QMessageBox>
#include <QProgressDialog>
#include <QPushButton>
#include <QSessionManager>
#include <utility>

#include "app/gui/core_words.h"
#include "app/gui/desktop_tray_host.h"
#include "ui/pages/about_dialog.h"
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
                         const Clock& clock, SessionSensorList sensors, SupervisorLimits limits)
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
  supervisor_->set_gate([this](const std::function<void(bool)>& allowed) { gate(allowed); });
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
  connect(bridge_.get(), &ui::Bridge::snapshot_changed, this, &Application::remember_instance);
  // Ten times a second at most, and a banner that is there already is left alone.
  const auto elsewhere = [this, told = QString()]() mutable {
    const auto snapshot = bridge_->snapshot();
    const bool there = supervisor_->status().remote && bridge_->attached() && snapshot;
    const QString data = there ? QString::fromStdString(snapshot->program.data_directory) : QString();
    if (data == told) return;
    told = data;
    if (!there) return window_->clear_banner(elsewhere_banner);
    window_->show_banner(elsewhere_banner, CoreWords::elsewhere(data, [this] { here_->trigger(); }));
  };
  connect(bridge_.get(), &ui::Bridge::snapshot_changed, this, elsewhere);
  connect(bridge_.get(), &ui::Bridge::attached_changed, this, elsewhere);
  connect(tray_.get(), &ui::Tray::open_requested, this, &Application::show_window);
  connect(tray_.get(), &ui::Tray::toggle_requested, this, &Application::toggle_window);
  connect(tray_.get(), &ui::Tray::quit_requested, this, &Application::quit);
  connect(tray_.get(), &ui::Tray::command_failed, this, &Application::show_error);
  connect(tray_.get(), &ui::Tray::available_changed, this, [this](bool available) {
    // Without an icon a hidden window would be lost; with one, a window that only stands for it is in the
    // way.
    if (!available && !window_->isVisible()) show_for_icon();
    if (available && std::exchange(stands_for_icon_, false) && window_->isMinimized()) window_->hide();
  });
  connect(preferences_.get(), &ui::Preferences::changed, this, [this] {
    theme_->choose(preferences_->theme());
    apply_autostart();
  });
  connect(
      &application_, &QGuiApplication::commitDataRequest, this, [this] { supervisor_->quit(); },
      Qt::DirectConnection);
  tray_->set_core_life(core_life());  // nothing runs yet: no alarm
  window_->may_close = [this] { return may_close(); };
  connect(&tick_, &QTimer::timeout, this, [this] {
    supervisor_->tick();
    notifier_->tick();
  });
  tick_.start(tick_period);
  connect(&data_timer_, &QTimer::timeout, this, &Application::check_data);
  data_timer_.start(data_period);
}

void Application::build_menu() {
  QMenu* menu = window_->menu();
  menu->addSeparator();
  menu->addAction(tr("Set up again…"), this, &Application::open_setup)->setObjectName("actionSetup");
  menu->addAction(tr("Use another data folder…"), this, &Application::choose_other_data);
  menu->addAction(tr("Connect to another computer…"), this, &Application::attach_elsewhere)
      ->setObjectName("actionElsewhere");
  here_ = menu->addAction(tr("Back to this computer"), this, [this] {
    supervisor_->close();
    look_for_data_now();
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
  dialog->open();
}

void Application::start() {
  preferences_->set_autostart(autostart_.enabled());
  restore_window();
  if (!arguments_.minimized) {
    window_->show();
  } else if (tray_->known()) {
    start_minimized();
  } else {
    connect(tray_.get(), &ui::Tray::found_out, this, &Application::start_minimized);
  }
  if (arguments_.setup) {
    open_setup();
  } else {
    look_for_data_now();
  }
  // Asks, so it comes when the window stands.
  if (!arguments_.link.isEmpty())
    QMetaObject::invokeMethod(
        this, [this] { handle_link(arguments_.link); }, Qt::QueuedConnection);
}

void Application::called(const Arguments& arguments) {
  if (arguments.quit) return quit();
  if (!arguments.minimized) show_window();
  if (arguments.setup) open_setup();
  if (!arguments.link.isEmpty()) handle_link(arguments.link);
}

void Application::quit() {
  if (quitting_) return;
  quitting_ = true;
  data_timer_.stop();
  sensors_->stop();
  supervisor_->quit();
  if (supervisor_->status().phase != CorePhase::Stopping || !window_->isVisible()) return;
  stopping_ = new QProgressDialog(
      tr("The core writes its last checkpoint…\nIf you do not wait, it goes on and ends by itself."),
      tr("Do not wait"), 0, 0, window_.get());
  stopping_->setObjectName("stopping");
  stopping_->setAttribute(Qt::WA_DeleteOnClose);
  stopping_->setWindowTitle(tr("Quitting NeuroShard"));
  stopping_->setWindowModality(Qt::WindowModal);
  stopping_->setMinimumDuration(0);
  // It goes on without us and ends by itself.
  connect(stopping_, &QProgressDialog::canceled, this, [this] { supervisor_->give_up(); });
  stopping_->show();
}

// It is still writing: not a silent end, or people look for a program that hangs.
void Application::leave_core_behind() {
  const CoreWords::Farewell words = CoreWords::farewell();
  tray_->notify(words.title, words.text, false);
  // Who pressed "Do not wait" has read it there.
  if (stopping_ == nullptr || !stopping_->isVisible()) return leave();
  stopping_->disconnect(this);
  stopping_->setLabelText(words.text);
  stopping_->setCancelButtonText(tr("Close"));
  connect(stopping_, &QProgressDialog::canceled, this, &Application::leave);
  QTimer::singleShot(farewell, this, &Application::leave);
}

void Application::leave() {
  if (std::exchange(left_, true)) return;
  save_window();
  config_.sync();
  Q_EMIT finished(0);
}

std::optional<ui::CoreLife> Application::core_life() const {
  if (data_missing_)
    return ui::CoreLife{ui::DisplayState::Error, tr("Needs you"), tr("the data disk is missing")};
  return CoreWords::life(supervisor_->status());
}

void Application::on_core_status() {
  const CoreStatus& status = supervisor_->status();
  const CoreActions actions{[this] { supervisor_->start(); }, [this] { supervisor_->restart(false); },
                            [this] { supervisor_->restart(false); }, [this] { here_->trigger(); }};
  tray_->set_core_life(core_life());
  window_->core_life_changed();
  here_->setVisible(status.remote);
  const bool running = status.phase == CorePhase::Running;
  window_->clear_banner(running ? core_banner : life_banner);
  if (data_missing_) return window_->clear_banner(core_banner);
  const auto content = CoreWords::banner(status, actions);
  if (content) {
    window_->show_banner(running ? life_banner : core_banner, *content);
  } else {
    window_->clear_banner(running ? life_banner : core_banner);
  }
  const bool bad = status.phase == CorePhase::Waiting || status.phase == CorePhase::Failed ||
                   status.phase == CorePhase::WrongVersion ||
                   (status.phase == CorePhase::Stopped && status.crashed);
  if (bad && content && told_ != status.phase)
    notifier_->add({ui::NotificationClass::Problem, content->title, content->text});
  told_ = status.phase;
}

void Application::on_attached(const std::shared_ptr<node::Node>& node) {
  bridge_->attach(node);
  node_ = node;
  if (node && !supervisor_->status().remote) {
    sensors_->start();
  } else {
    sensors_->stop();
  }
}

void Application::on_event(const node::Event& event) {
  if (const auto* raised = std::get_if<node::AlertRaised>(&event)) {
    if (raised->alert.severity == node::Severity::Notice) return;
    notifier_->add({ui::NotificationClass::Problem, tr("NeuroShard needs you"),
                    QString::fromStdString(raised->alert.message)});
  } else if (const auto* changed = std::get_if<node::StateChanged>(&event)) {
    if (changed->state != node::RunState::Paused) return;
    notifier_->add({ui::NotificationClass::Pause, tr("Paused"), tray_->view().status});
  } else if (std::holds_alternative<node::CheckpointWritten>(event)) {
    notifier_->add({ui::NotificationClass::Finished, tr("A checkpoint was written"),
                    QString::fromStdString(std::get<node::CheckpointWritten>(event).name)});
  }
}

bool Application::may_close() {
  if (quitting_) return true;
  save_window();
  if (tray_->available() && preferences_->close_to_tray()) {
    if (!config_.told_tray()) {
      config_.set_told_tray();
      tray_->notify(tr("NeuroShard goes on"),
                    tr("The window is closed; the icon here opens it again, and has Quit."), false);
    }
    window_->hide();
    return false;
  }
  // Nowhere to come back from: ask, so that the window is never lost and training never stopped unasked.
  QMessageBox question(
      QMessageBox::Question, tr("Close NeuroShard?"),
      tr("Training can go on in the background, with the window minimised; or NeuroShard quits, with a "
         "last checkpoint."),
      QMessageBox::Cancel, window_.get());
  question.setObjectName("closeQuestion");
  QPushButton* keep = question.addButton(tr("Go on, minimised"), QMessageBox::AcceptRole);
  QPushButton* leave = question.addButton(tr("Quit"), QMessageBox::DestructiveRole);
  question.setDefaultButton(keep);
  question.exec();
  const QAbstractButton* answer = question.clickedButton();
  if (answer == static_cast<QAbstractButton*>(keep)) window_->showMinimized();
  if (answer == static_cast<QAbstractButton*>(leave)) quit();
  return false;
}

void Application::toggle_window() {
  if (window_->isVisible() && !window_->isMinimized() && window_->isActiveWindow()) {
    window_->hide();
  } else {
    show_window();
  }
}

// Only the icon; the window is made and waits. Somebody may have opened it meanwhile.
void Application::start_minimized() {
  if (!tray_->available() && !window_->isVisible()) show_for_icon();
}

void Application::show_for_icon() {
  stands_for_icon_ = true;
  window_->showMinimized();
}

void Application::show_window() {
  stands_for_icon_ = false;
  if (window_->isMinimized()) window_->setWindowState(window_->windowState() & ~Qt::WindowMinimized);
  window_->show();
  window_->raise();
  window_->activateWindow();
}

void Application::restore_window() {
  if (!config_.geometry().isEmpty()) window_->restoreGeometry(config_.geometry());
  if (!config_.window_state().isEmpty()) window_->restoreState(config_.window_state());
  if (window_->page_keys().contains(config_.page())) window_->open_page(config_.page());
}

void Application::save_window() {
  config_.set_window(window_->saveGeometry(), window_->saveState(), window_->current_page());
}

void Application::apply_autostart() {
  if (preferences_->autostart() == autostart_.enabled()) return;
  if (const auto set = autostart_.set(preferences_->autostart()); !set.ok())
    show_error(tr("Starting with the session"), QString::fromStdString(set.error().describe()));
}

void Application::show_error(const QString& what, const QString& why) {
  ui::BannerContent content;
  content.tone = ui::Tone::Danger;
  content.title = tr("%1 did not work").arg(what);
  content.text = why;
  content.can_close = true;
  window_->show_banner("error", content);
}

}  // namespace neuroshard::gui
