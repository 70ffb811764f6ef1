// The app in this process, with directories of its own for everything that an app and a core read and write
// (HOME, XDG, runtime, data) and no session bus; the core is a real neuroshardd beside it. Everything is
// ended with the object.
#pragma once

#include <QAbstractButton>
#include <QApplication>
#include <QDialogButtonBox>
#include <QDir>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTimer>
#include <QtTest>
#include <filesystem>
#include <functional>
#include <memory>

#include "app/gui/application.h"
#include "core/control/control_file.h"
#include "core/platform/file/private_directory.h"
#include "tests/gui/support/patience.h"
#include "tests/support/training_run.h"
#include "ui/widgets/banner.h"

// Fails when the condition has not come true by the time that the program has. Events are handled meanwhile.
#define NS_WAIT_FOR(patience, condition)                                                        \
  QVERIFY2(QTest::qWaitFor([&] { return static_cast<bool>(condition); }, (patience).left_ms()), \
           "never "                                                                             \
           "true")

namespace neuroshard::test {

// A trained directory that leaves a processor to others. Empty on success, else what went wrong.
inline QByteArray prepare_for_app(TrainingLab& lab) {
  const QByteArray problem = lab.prepare();
  if (!problem.isEmpty()) return problem;
  const ProcessResult set =
      run_node({"settings", "set", "cpu_threads", "1", "--data-dir", lab.path("origin")});
  return set.ok() ? QByteArray() : "settings set: " + set.text();
}

inline void kill_now(std::int64_t pid) {
  QCOMPARE(QProcess::execute("kill", {"-9", QString::number(pid)}), 0);
}

class AppFixture {
 public:
  AppFixture() {
    since_.start();
    // A clean desktop: nothing of the user's is read or written.
    for (const QString& name : QProcessEnvironment::systemEnvironment().keys()) {
      if (name.startsWith("NEUROSHARD_")) qunsetenv(name.toLatin1().constData());
    }
    for (const auto& [name, folder] : private_folders(folder_.path())) {
      QDir().mkpath(folder);
      qputenv(name, folder.toUtf8());
    }
    QFile::setPermissions(path("runtime"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    // As main() does: others may not look into it.
    static_cast<void>(platform::make_private_directory(runtime().toStdString()).ok());
    QDir().mkpath(path("text"));
    QFile text(path("text/tale.txt"));
    if (text.open(QIODevice::WriteOnly)) text.write(made_up_text(7, 60'000));
  }
  ~AppFixture() {
    // Cores that are left are ended by their numbers, those only that an app of this test has started: one
    // goes on while the window shows another computer.
    if (app_) remember_core();
    app_.reset();
    for (const platform::ProcessIdentity& core : started_) {
      if (platform::find_process(core.pid) == core)
        QProcess::execute("kill", {"-9", QString::number(core.pid)});
    }
  }

  QString path(const QString& name) const { return folder_.filePath(name); }
  QString data() const { return path("data"); }
  QString runtime() const { return path("runtime/neuroshard"); }

  gui::ApplicationPlaces places() const {
    gui::ApplicationPlaces places;
    places.program_folder = qEnvironmentVariable("NS_BIN_DIR");
    places.app_program = places.program_folder + "/neuroshard";
    places.config_file = path("config/app.ini");
    places.autostart_folder = path("config/autostart");
    places.default_data = data();
    places.runtime_directory = runtime();
    places.version = "0.1.0";
    return places;
  }

  void give_up_stopping_after(Duration limit) { stop_limit_ = limit; }  // before start()
  gui::Application& start(const gui::Arguments& arguments = {}) {
    app_.reset();
    gui::SupervisorLimits limits;
    limits.first_wait = std::chrono::milliseconds(100);
    limits.stop_limit = stop_limit_;
    app_ = std::make_unique<gui::Application>(*qApp, places(), arguments, clock_, gui::SessionSensorList{},
                                              limits);
    QObject::connect(&app_->supervisor(), &gui::CoreSupervisor::status_changed, &app_->supervisor(), [this] {
      remember_phase();
      remember_core();
    });
    app_->start();
    return *app_;
  }
  gui::Application& app() { return *app_; }
  void stop_app() { app_.reset(); }

  // A directory that is ready to train, as if the assistant had been through: a copy of the lab's.
  void use_data_of(const TrainingLab& lab) {
    std::filesystem::copy(lab.path("origin").toStdString(), data().toStdString(),
                          std::filesystem::copy_options::recursive);
    gui::UserConfig config(places().config_file);
    config.set_data_directory(data(), gui::instance_of(data()));
  }

  // The core's own output, in a process of its own: its first object, or the one behind it.
  QJsonObject core(const QStringList& words, int line = 0) const {
    NodeProcess process(words + QStringList{"--data-dir", data(), "--json"});
    return json_lines(process.finish().out).value(line);
  }

  std::shared_ptr<const node::Snapshot> snapshot() { return app_->bridge().snapshot(); }
  std::uint64_t step() {
    const auto view = snapshot();
    return view ? view->training.step : 0;
  }
  gui::CorePhase phase() { return app_->supervisor().status().phase; }
  std::int64_t core_pid() { return app_->supervisor().status().process.pid; }

  QString pill() {
    auto* pill = find<QAbstractButton>("state_pill");
    return pill == nullptr ? QString() : pill->text();
  }
  // The known facts after a failure, on standard error, uncut.
  void tell() {
    QStringList lines{"--- what the app saw", "phases: " + phases_.join(", ")};
    if (app_) {
      const gui::CoreStatus& status = app_->supervisor().status();
      lines << QString("core: phase %1, ours %2, pid %3, crashes %4, said \"%5\", error \"%6\"")
                   .arg(static_cast<int>(status.phase))
                   .arg(status.ours)
                   .arg(status.process.pid)
                   .arg(status.crashes)
                   .arg(status.said, QString::fromStdString(status.error.describe()));
      lines << "pill: " + pill() << "banners: " + banners();
      if (const auto view = snapshot()) {
        lines << QString("snapshot: state %1, step %2, contributing %3, activity \"%4\"")
                     .arg(QString::fromStdString(std::string(to_string(view->state))))
                     .arg(view->training.step)
                     .arg(view->contributing)
                     .arg(QString::fromStdString(view->training.activity));
        for (const auto& reason : view->pause_reasons)
          lines << "  paused: " + QString::fromStdString(reason.text);
        for (const auto& alert : view->alerts) lines << "  alert: " + QString::fromStdString(alert.message);
      }
    }
    tell_lines(lines);
    tell_end_of(runtime() + "/core-output.txt");
    tell_end_of(data() + "/logs/neuroshardd.log");
    tell_end_of(path("unplugged/logs/neuroshardd.log"));
  }

  template <class Widget>
  Widget* find(const QString& name) {
    return app_->window().template findChild<Widget*>(name);
  }
  // Titles and texts of the banners that are shown.
  QString banners() {
    QStringList all;
    for (const auto* banner : app_->window().template findChildren<ui::Banner*>()) {
      if (banner->isVisibleTo(&app_->window()))
        all << banner->content().title + ": " + banner->content().text;
    }
    return all.join('\n');
  }
  // Presses the button of a banner.
  bool press_banner(const QString& text) {
    for (auto* button : app_->window().template findChildren<QAbstractButton*>()) {
      if (button->text() != text || !button->isVisible()) continue;
      QTest::mouseClick(button, Qt::LeftButton);
      return true;
    }
    return false;
  }
  QAction* tray_entry(const QString& begins) {
    for (QAction* action : app_->tray().menu()->actions()) {
      if (action->text().startsWith(begins)) return action;
    }
    return nullptr;
  }

 private:
  void remember_core() {
    const gui::CoreStatus& status = app_->supervisor().status();
    const bool another = status.process.pid != 0 && status.process != platform::own_process();
    if (status.ours && another && (started_.empty() || started_.back() != status.process))
      started_.push_back(status.process);
  }
  // When the life of the core turned, in milliseconds: where the time went.
  void remember_phase() {
    const int phase = static_cast<int>(app_->supervisor().status().phase);
    if (phase == last_phase_) return;
    last_phase_ = phase;
    phases_ << QString("%1 at %2").arg(phase).arg(since_.elapsed());
  }

  Duration stop_limit_ = std::chrono::seconds(60);  // a last checkpoint on a busy disk
  QTemporaryDir folder_;
  QElapsedTimer since_;
  QStringList phases_;
  int last_phase_ = -1;
  std::vector<platform::ProcessIdentity> started_;
  SystemClock clock_;
  std::unique_ptr<gui::Application> app_;
};

// Does what brings a question up, answers it with the button of that text ("" = Escape), and gives the
// question's text back; empty: there came none. Some questions come only when a program has answered.
inline QString answer_question(const Patience& patience, const std::function<void()>& act,
                               const QString& name, const QString& answer) {
  QString asked;
  QTimer hand;
  QObject::connect(&hand, &QTimer::timeout, &hand, [&] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr || box->objectName() != name) return;
    hand.stop();
    asked = box->text();
    for (QAbstractButton* button : box->buttons()) {
      if (answer.isEmpty() || button->text() != answer) continue;
      QTest::mouseClick(button, Qt::LeftButton);
      return;
    }
    QTest::keyClick(box, Qt::Key_Escape);
  });
  hand.start(20);
  act();
  static_cast<void>(QTest::qWaitFor([&] { return !asked.isEmpty(); }, patience.left_ms()));
  return asked;
}

// Does what brings the dialog of files up, and chooses that path in it; false: there came no dialog.
inline bool choose_path(const std::function<void()>& act, const QString& path) {
  bool chosen = false;
  QTimer hand;
  QObject::connect(&hand, &QTimer::timeout, &hand, [&] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (dialog == nullptr) return;
    dialog->findChild<QLineEdit*>("fileNameEdit")->setText(path);
    QPushButton* open = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Open);
    if (!open->isEnabled()) return;
    chosen = true;
    hand.stop();
    QTest::mouseClick(open, Qt::LeftButton);
  });
  hand.start(20);
  act();
  return chosen;
}

}  // namespace neuroshard::test
