// The app in this process, with a directory, a configuration and a runtime directory of its own; the core is
// a real neuroshardd beside it. Everything is ended with the object.
#pragma once

#include <QAbstractButton>
#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "app/gui/application.h"
#include "core/control/control_file.h"
#include "core/platform/private_directory.h"
#include "tests/support/training_run.h"
#include "ui/widgets/banner.h"

namespace neuroshard::test {

class AppFixture {
 public:
  AppFixture() {
    // A clean desktop: nothing of the user's is read or written.
    for (const QString& name : QProcessEnvironment::systemEnvironment().keys()) {
      if (name.startsWith("NEUROSHARD_")) qunsetenv(name.toLatin1().constData());
    }
    qputenv("XDG_RUNTIME_DIR", path("runtime").toUtf8());
    QDir().mkpath(path("runtime"));
    QFile::setPermissions(path("runtime"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    // As main() does: others may not look into it.
    static_cast<void>(platform::make_private_directory(runtime().toStdString()).ok());
    QDir().mkpath(path("text"));
    QFile text(path("text/tale.txt"));
    if (text.open(QIODevice::WriteOnly)) text.write(made_up_text(7, 60'000));
  }
  ~AppFixture() {
    // A core that is left is ended by its number, and only if it is the one that this app started.
    const auto status = app_ ? app_->supervisor().status() : gui::CoreStatus{};
    app_.reset();
    const std::int64_t pid = status.ours ? status.process.pid : 0;
    if (pid != 0 && pid != QCoreApplication::applicationPid())
      QProcess::execute("kill", {"-9", QString::number(pid)});
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

  gui::Application& start(const gui::Arguments& arguments = {}) {
    app_.reset();
    gui::SupervisorLimits limits;
    limits.first_wait = std::chrono::milliseconds(100);
    app_ = std::make_unique<gui::Application>(*qApp, places(), arguments, clock_, gui::SessionSensorList{},
                                              limits);
    app_->start();
    return *app_;
  }
  gui::Application& app() { return *app_; }
  void stop_app() { app_.reset(); }

  // A directory that is ready to train, without the assistant: wallet, limits and profile.
  QByteArray prepare_data() {
    for (const QStringList& words :
         {QStringList{"wallet", "create", "--json"}, {"settings", "set", "cpu_threads", "2"}}) {
      const ProcessResult result = run_node(words + QStringList{"--data-dir", data()});
      if (!result.ok()) return result.text();
    }
    gui::UserConfig config(places().config_file);
    config.set_data_directory(data(), gui::instance_of(data()));
    config.set_text_folder(path("text"));
    return {};
  }

  // What the core itself says, in a process of its own.
  QJsonObject core(const QStringList& words) const {
    NodeProcess process(words + QStringList{"--data-dir", data(), "--json"});
    return json_lines(process.finish().out).value(0);
  }

  std::shared_ptr<const node::Snapshot> snapshot() { return app_->bridge().snapshot(); }
  std::uint64_t step() {
    const auto view = snapshot();
    return view ? view->training.step : 0;
  }
  gui::CorePhase phase() { return app_->supervisor().status().phase; }
  std::int64_t core_pid() { return app_->supervisor().status().process.pid; }

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
  QTemporaryDir folder_;
  SystemClock clock_;
  std::unique_ptr<gui::Application> app_;
};

}  // namespace neuroshard::test
