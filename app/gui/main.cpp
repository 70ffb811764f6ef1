// neuroshard: the desktop app.
#include <QApplication>
#include <QDir>
#include <QLibraryInfo>
#include <QLocale>
#include <QMessageBox>
#include <QSocketNotifier>
#include <QTextStream>
#include <QTranslator>

#include "app/gui/application.h"
#include "app/gui/install_kind.h"
#include "app/gui/single_instance.h"
#include "app/gui/user_config.h"
#include "core/platform/file/paths.h"
#include "core/platform/file/private_directory.h"
#include "core/platform/process/memory_privacy.h"
#include "core/platform/process/stop_pipe.h"
#include "ui/text/translation.h"

namespace {

using namespace neuroshard;  // NOLINT

constexpr int exit_failed = 1, exit_usage = 64;

static_assert(gui::SingleInstance::end_limit >
                  gui::SupervisorLimits().stop_limit + gui::Application::farewell,
              "a start waits until the app that quits has ended");

void say(FILE* stream, const QString& text) {
  QTextStream(stream) << text;
}

gui::ApplicationPlaces find_places() {
  const platform::Environment environment = platform::process_environment();
  gui::ApplicationPlaces places;
  places.program_folder = QCoreApplication::applicationDirPath();
  places.app_program = gui::lasting_program(environment, QCoreApplication::applicationFilePath());
  places.config_file = gui::UserConfig::default_path();
  places.autostart_folder = gui::Autostart::default_folder();
  const std::string named = environment("NEUROSHARD_DATA_DIR");
  places.default_data = QString::fromStdString(
      named.empty() ? platform::default_data_directory(environment).value_or("") : named);
  places.runtime_directory = QString::fromStdString(platform::runtime_directory(environment));
  places.version = NS_VERSION;
  places.releases_url = NS_RELEASES_URL;
  places.releases_key = NS_RELEASES_KEY;
  return places;
}

// The app's own words and Qt's, in the language that was chosen (NEUROSHARD_LANGUAGE goes before it), else
// the desktop's.
void install_translations(const QString& chosen) {
  const std::string named = platform::process_environment()("NEUROSHARD_LANGUAGE");
  const QString language = named.empty() ? chosen : QString::fromStdString(named);
  const QLocale locale = language.isEmpty() ? QLocale() : QLocale(language);
  if (!language.isEmpty() && !language.startsWith("pseudo")) QLocale::setDefault(locale);
  auto* qt = new QTranslator(qApp);
  if (qt->load(locale, "qtbase", "_", QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    QCoreApplication::installTranslator(qt);
  ui::install_translation(*qApp, language);
}

int run(QApplication& application, const gui::Arguments& arguments, const QStringList& words) {
  gui::ApplicationPlaces places = find_places();
  if (const auto made = platform::make_private_directory(places.runtime_directory.toStdString());
      !made.ok()) {
    say(stderr, QString::fromStdString("neuroshard: " + made.error().describe() + '\n'));
    return exit_failed;
  }
  const QString chosen = gui::UserConfig(places.config_file).data_directory();
  gui::SingleInstance instance(
      places.runtime_directory,
      gui::instance_key(arguments.data_directory, chosen.isEmpty() ? places.default_data : chosen,
                        places.config_file));
  QStringList handed_over = words;
  // The app that runs may be in another folder.
  if (!arguments.text.isEmpty()) handed_over << "--text" << QDir().absoluteFilePath(arguments.text);
  switch (instance.claim(handed_over)) {
    case gui::SingleInstance::Role::First: break;
    case gui::SingleInstance::Role::Second: return 0;
    case gui::SingleInstance::Role::Failed:
      say(stderr, "neuroshard: " + instance.error() + '\n');
      return exit_failed;
  }
  if (arguments.quit) {
    say(stdout, "neuroshard: no app runs here; to quit one with other data, add its --data-dir\n");
    return 0;
  }
  install_translations(ui::Preferences(places.config_file).language());
  const SystemClock clock;
  gui::Application app(application, std::move(places), arguments, clock, gui::make_session_sensors());
  QObject::connect(&instance, &gui::SingleInstance::called, &app,
                   [&app](const QStringList& call) { app.called(gui::parse_arguments(call)); });
  QObject::connect(&app, &gui::Application::quitting, &instance, &gui::SingleInstance::stop_listening);
  QObject::connect(&app, &gui::Application::finished, &application, &QApplication::exit,
                   Qt::QueuedConnection);
  auto stop = platform::StopPipe::install();
  std::unique_ptr<QSocketNotifier> stop_notifier;
  if (stop.ok()) {
    stop_notifier = std::make_unique<QSocketNotifier>(stop->descriptor(), QSocketNotifier::Read);
    QObject::connect(stop_notifier.get(), &QSocketNotifier::activated, &app, [&app, &stop_notifier] {
      stop_notifier->setEnabled(false);
      app.quit();
    });
  }
  app.start();
  return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
  // No more than that: the desktop's portals (file dialogs, colours) refuse a program that they can't inspect.
  platform::forbid_core_dumps();
  QStringList words;
  for (int i = 1; i < argc; ++i) words << QString::fromLocal8Bit(argv[i]);
  const gui::Arguments arguments = gui::parse_arguments(words);
  if (!arguments.error.isEmpty()) {
    say(stderr, "neuroshard: " + arguments.error + '\n');
    return exit_usage;
  }
  if (arguments.help || arguments.version) {
    say(stdout, arguments.help ? gui::help_text() : QStringLiteral("neuroshard " NS_VERSION "\n"));
    return 0;
  }
  QCoreApplication::setApplicationName("neuroshard");
  QCoreApplication::setApplicationVersion(NS_VERSION);
  QGuiApplication::setApplicationDisplayName("NeuroShard");
  QGuiApplication::setDesktopFileName("neuroshard");
  QApplication application(argc, argv);
  QApplication::setQuitOnLastWindowClosed(false);
  return run(application, arguments, words);
}
