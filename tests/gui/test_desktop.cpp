// The app's manners on a desktop: command line, links, one instance, autostart, notifications, and where the
// data is.
#include <QLocalSocket>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <map>
#include <string>

#include "app/gui/arguments.h"
#include "app/gui/autostart.h"
#include "app/gui/background.h"
#include "app/gui/data_location.h"
#include "app/gui/event_notices.h"
#include "app/gui/install_kind.h"
#include "app/gui/link.h"
#include "app/gui/notifier.h"
#include "app/gui/process_launcher.h"
#include "app/gui/session_sensors.h"
#include "app/gui/single_instance.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::gui;  // NOLINT
using std::chrono::seconds;
using ui::NotificationClass;

namespace {

void write(const QString& path, const QByteArray& text) {
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(text);
}

class FixedSensor final : public SessionSensor {
 public:
  void read(node::SessionSensors* into) override {
    into->input_idle = seconds(42);
    into->full_screen = true;
    into->full_screen_program = "player";
  }
};

}  // namespace

class TestDesktop : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_command_line();
  void wrong_command_lines_name_what_is_wrong();
  void links();
  void links_that_are_refused();
  void an_invitation_stays_out_of_the_command_line();
  void first_run_missing_disk_and_ready();
  void apps_with_the_same_data_have_one_key();
  void the_first_app_hears_the_second();
  void a_start_while_the_first_quits_takes_its_place();
  void what_a_killed_app_left_is_cleared();
  void noise_on_the_socket_is_bounded();
  void autostart_entry();
  void an_autostart_entry_of_a_deleted_program_is_repaired();
  void an_appimage_is_started_by_its_file();
  void notifications_are_rare_and_chosen();
  void pauses_and_their_ends_are_notified();
  void the_users_own_pause_is_not_notified();
  void checkpoints_of_the_core_are_not_notified();
  void sensors_report_values_and_unknowns();
  void answers_from_the_background_are_never_lost();
};

void TestDesktop::the_command_line() {
  const Arguments plain = parse_arguments({});
  QVERIFY(plain.error.isEmpty() && !plain.minimized && plain.link.isEmpty());
  const Arguments all =
      parse_arguments({"--minimized", "--data-dir", "/d", "--setup", "neuroshard:invite?peer=a:1"});
  QVERIFY(all.error.isEmpty() && all.minimized && all.setup);
  QCOMPARE(all.data_directory, QString("/d"));
  QCOMPARE(all.link, QString("neuroshard:invite?peer=a:1"));
  QCOMPARE(parse_arguments({"--data-dir=/e"}).data_directory, QString("/e"));
  QCOMPARE(parse_arguments({"--text", "/t"}).text, QString("/t"));
  QVERIFY(parse_arguments({"--help"}).help && parse_arguments({"--version"}).version &&
          parse_arguments({"--quit"}).quit);
  for (const char* flag : {"--data-dir", "--text", "--minimized", "--setup", "--quit", "--version", "--help"})
    QVERIFY2(help_text().contains(flag), flag);
}

void TestDesktop::wrong_command_lines_name_what_is_wrong() {
  QVERIFY(parse_arguments({"--data-dir"}).error.contains("--data-dir"));
  QVERIFY(parse_arguments({"--data-dir="}).error.contains("--data-dir"));
  QVERIFY(parse_arguments({"--fast"}).error.contains("--fast"));
  QVERIFY(parse_arguments({"http://example.org"}).error.contains("http://example.org"));
  QVERIFY(!parse_arguments({"neuroshard:a", "neuroshard:b"}).error.isEmpty());
  QVERIFY(!parse_arguments({"neuroshard:" + QString(5000, 'a')}).error.isEmpty());
}

void TestDesktop::links() {
  const Link attach = parse_link("neuroshard:attach?file=/media/stick/control%20file.json");
  QCOMPARE(std::get<AttachLink>(attach).file, QString("/media/stick/control file.json"));
  QCOMPARE(std::get<AttachLink>(parse_link("neuroshard://attach?file=/c.json")).file, QString("/c.json"));
  QCOMPARE(std::get<JoinLink>(parse_link("NeuroShard://join?to=AX-_9")).link,
           QString("neuroshard:join?to=AX-_9"));
  QCOMPARE(std::get<InviteLink>(parse_link("neuroshard:invite?peer=host.example:9000")).peer,
           QString("host.example:9000"));
  QCOMPARE(std::get<InviteLink>(parse_link("NeuroShard:invite?peer=[2001:db8::1]:9000")).peer,
           QString("[2001:db8::1]:9000"));
}

void TestDesktop::links_that_are_refused() {
  for (const char* text :
       {"neuroshard:", "neuroshard:pay?to=x", "neuroshard:attach", "neuroshard:attach?file=relative.json",
        "neuroshard:attach?file=/a%0Ab", "neuroshard:join",
        "neuroshard:join?to=", "neuroshard:join?to=a%20--yes", "neuroshard:attach?file=/a%E2%80%AEb",
        "neuroshard:invite?peer=host", "neuroshard:invite?peer=host:0", "neuroshard:invite?peer=host:70000",
        "neuroshard:invite?peer=a%20b:1", "http://example.org", "", "neuroshard:%"}) {
    const Link link = parse_link(text);
    QVERIFY2(std::holds_alternative<UnknownLink>(link), text);
    QVERIFY2(!std::get<UnknownLink>(link).why.isEmpty(), text);
  }
  QVERIFY(std::holds_alternative<UnknownLink>(
      parse_link("neuroshard:invite?peer=" + QString(100000, 'a') + ":1")));
}

void TestDesktop::an_invitation_stays_out_of_the_command_line() {
  const QTemporaryDir folder;
  const QString program = folder.filePath("core");  // tells its arguments, then its input
  write(program, "#!/bin/sh\nprintf '%s\\n' \"$*\" >&2\ncat >&2\n");
  QVERIFY(QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
  ProcessLauncher launcher(program, folder.filePath("output"));
  QSignalSpy ended(&launcher, &CoreLauncher::ended);
  LaunchRequest request;
  request.data_directory = folder.filePath("d");
  request.invitation = "neuroshard:join?to=A";
  QVERIFY(launcher.launch(request).ok());
  QTRY_COMPARE(ended.size(), 1);
  const QStringList said = ended.first().first().value<CoreExit>().said.split('\n');
  QCOMPARE(said.size(), 2);
  QVERIFY2(said.first().endsWith("--join - --yes"), qPrintable(said.first()));
  QCOMPARE(said.last(), request.invitation);
}

void TestDesktop::first_run_missing_disk_and_ready() {
  const QTemporaryDir folder;
  const QString data = folder.filePath("data");
  const QString id = "01234567-89ab-4cde-8f01-23456789abcd";
  // Never chosen: the default place decides.
  QCOMPARE(look_for_data({{}, {}, data}).state, DataState::FirstRun);
  // Chosen and gone: never a first run.
  QCOMPARE(look_for_data({data, id, {}}).state, DataState::Missing);
  QCOMPARE(look_for_data({data, {}, {}}).state, DataState::Missing);
  QVERIFY(QDir().mkpath(data));
  // The mount point without the disk.
  const DataLocation empty = look_for_data({data, id, {}});
  QCOMPARE(empty.state, DataState::Missing);
  QVERIFY(!empty.problem.isEmpty());
  // Chosen a moment ago; the core makes it.
  QCOMPARE(look_for_data({data, {}, {}}).state, DataState::Ready);
  write(data + "/FORMAT", "1\n");
  write(data + "/instance", id.toLatin1() + "\n");
  QCOMPARE(look_for_data({data, id, {}}).state, DataState::Ready);
  QCOMPARE(look_for_data({{}, {}, data}).state, DataState::Ready);
  // Another disk in its place.
  const DataLocation other = look_for_data({data, "ffffffff-89ab-4cde-8f01-23456789abcd", {}});
  QCOMPARE(other.state, DataState::Missing);
  QVERIFY(other.problem.contains("another"));
}

void TestDesktop::apps_with_the_same_data_have_one_key() {
  const QString config = "/config/app.ini";
  QCOMPARE(instance_key({}, "/data", config), config);
  for (const char* same : {"/data", "/data/", "/other/../data"})
    QCOMPARE(instance_key(same, "/data", config), config);
  QCOMPARE(instance_key("/data", "/data/", config), config);
  for (const char* same : {"/other", "/other/", "/./other"})
    QCOMPARE(instance_key(same, "/data", config), QString("/other"));
  QCOMPARE(instance_key("other", "/data", config), QDir::currentPath() + "/other");
  QCOMPARE(instance_key("/other", {}, config), QString("/other"));
}

void TestDesktop::the_first_app_hears_the_second() {
  const QTemporaryDir folder;
  SingleInstance first(folder.path(), "key");
  QCOMPARE(first.claim({}), SingleInstance::Role::First);
  QSignalSpy called(&first, &SingleInstance::called);
  // The second waits for an answer, so it runs on a thread of its own here.
  const std::unique_ptr<QThread> thread(QThread::create([&folder] {
    SingleInstance second(folder.path(), "key");
    QCOMPARE(second.claim({"--setup", "neuroshard:invite?peer=a:1"}), SingleInstance::Role::Second);
  }));
  thread->start();
  QTRY_COMPARE_WITH_TIMEOUT(called.count(), 1, 20000);
  QCOMPARE(called[0][0].toStringList(), QStringList({"--setup", "neuroshard:invite?peer=a:1"}));
  QTRY_VERIFY_WITH_TIMEOUT(thread->isFinished(), 20000);
  SingleInstance other(folder.path(), "other data");
  QCOMPARE(other.claim({}), SingleInstance::Role::First);
}

void TestDesktop::a_start_while_the_first_quits_takes_its_place() {
  const QTemporaryDir folder;
  auto first = std::make_unique<SingleInstance>(folder.path(), "key");
  QCOMPARE(first->claim({}), SingleInstance::Role::First);
  const QSignalSpy called(first.get(), &SingleInstance::called);
  first->stop_listening();
  auto role = SingleInstance::Role::Failed;
  const std::unique_ptr<QThread> thread(QThread::create([&folder, &role] {
    SingleInstance second(folder.path(), "key");
    role = second.claim({"--setup"});
  }));
  thread->start();
  QTest::qWait(300);
  const bool waited = thread->isRunning();
  const auto heard = called.count();
  first.reset();
  QVERIFY(thread->wait(20000));
  QVERIFY(waited);
  QCOMPARE(heard, 0);
  QCOMPARE(role, SingleInstance::Role::First);
}

void TestDesktop::what_a_killed_app_left_is_cleared() {
  const QTemporaryDir folder;
  {
    SingleInstance killed(folder.path(), "key");
    QCOMPARE(killed.claim({}), SingleInstance::Role::First);
  }
  // A socket file that nobody listens on.
  for (const QString& name : QDir(folder.path()).entryList({"app-*.lock"}, QDir::Files))
    QFile::remove(folder.filePath(name));
  QLocalServer stale;
  SingleInstance next(folder.path(), "key");
  QCOMPARE(next.claim({}), SingleInstance::Role::First);
}

void TestDesktop::noise_on_the_socket_is_bounded() {
  const QTemporaryDir folder;
  SingleInstance first(folder.path(), "key");
  QCOMPARE(first.claim({}), SingleInstance::Role::First);
  QSignalSpy called(&first, &SingleInstance::called);
  QString path;
  for (const QString& name : QDir(folder.path()).entryList(QDir::System | QDir::Files)) {
    if (!name.endsWith(".lock")) path = folder.filePath(name);
  }
  QVERIFY(!path.isEmpty());
  QLocalSocket noise;
  noise.connectToServer(path);
  QTRY_COMPARE(noise.state(), QLocalSocket::ConnectedState);
  noise.write(QByteArray(4 * SingleInstance::max_message, 'x'));
  QTRY_COMPARE_WITH_TIMEOUT(noise.state(), QLocalSocket::UnconnectedState, 20000);
  QCOMPARE(called.count(), 0);
}

void TestDesktop::autostart_entry() {
  const QTemporaryDir folder;
  const Autostart autostart(folder.filePath("autostart"), "/opt/my apps/neuroshard");
  QVERIFY(!autostart.enabled());
  QVERIFY(autostart.set(true).ok());
  QVERIFY(autostart.enabled());
  QVERIFY(autostart.entry().contains("Exec=\"/opt/my apps/neuroshard\" --minimized\n"));
  // Switched off in the desktop's own settings.
  write(folder.filePath("autostart/neuroshard.desktop"), autostart.entry().toUtf8() + "Hidden=true\n");
  QVERIFY(!autostart.enabled());
  QVERIFY(autostart.set(true).ok() && autostart.enabled());
  QVERIFY(autostart.set(false).ok());
  QVERIFY(!autostart.enabled());
  QVERIFY(autostart.set(false).ok());
  const Autostart nowhere("/proc/nowhere", "/usr/bin/neuroshard");
  QVERIFY(!nowhere.set(true).ok());
}

void TestDesktop::an_autostart_entry_of_a_deleted_program_is_repaired() {
  const QTemporaryDir folder;
  const QString old_program = folder.filePath("1 $`\"\\% old");
  const QString file = folder.filePath("autostart/neuroshard.desktop");
  const auto written = [&file] {
    QFile entry(file);
    return entry.open(QIODevice::ReadOnly) ? QString::fromUtf8(entry.readAll()) : QString();
  };
  const Autostart before(folder.filePath("autostart"), old_program);
  const Autostart after(folder.filePath("autostart"), "/opt/new/neuroshard");
  QVERIFY(after.repair().ok());
  QVERIFY(!after.enabled());  // it was off
  QVERIFY(before.set(true).ok());
  write(old_program, "");
  QVERIFY(after.repair().ok());
  QCOMPARE(written(), before.entry());
  QVERIFY(QFile::remove(old_program));
  QVERIFY(after.repair().ok());
  QCOMPARE(written(), after.entry());
  // The user's own entry, and one that was switched off.
  const QByteArrayList others{"[Desktop Entry]\nExec=neuroshard\n",
                              before.entry().toUtf8() + "Hidden=true\n"};
  for (const QByteArray& own : others) {
    write(file, own);
    QVERIFY(after.repair().ok());
    QCOMPARE(written(), QString::fromUtf8(own));
  }
}

void TestDesktop::an_appimage_is_started_by_its_file() {
  const QTemporaryDir folder;
  const QString mounted = QDir(folder.path()).canonicalPath();
  const QString program = mounted + "/bin/neuroshard";
  std::map<std::string, std::string> variables;
  const platform::Environment environment = [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  QCOMPARE(lasting_program(environment, program), program);
  variables = {{"APPIMAGE", "/opt/n.AppImage"}, {"APPDIR", mounted.toStdString()}};
  QCOMPARE(lasting_program(environment, program), QString("/opt/n.AppImage"));
  // The variables of another AppImage, such as a terminal.
  QCOMPARE(lasting_program(environment, "/usr/bin/neuroshard"), QString("/usr/bin/neuroshard"));
  variables["APPIMAGE"] = "n.AppImage";
  QCOMPARE(lasting_program(environment, program), program);
}

void TestDesktop::notifications_are_rare_and_chosen() {
  ManualClock clock;
  std::vector<Notification> shown;
  Notifier notifier(
      clock, [](NotificationClass about) { return about != NotificationClass::Finished; },
      [&shown](const Notification& one) { shown.push_back(one); });
  notifier.add({NotificationClass::Finished, "checkpoint", ""});
  QVERIFY(shown.empty());  // not wanted
  notifier.add({NotificationClass::Problem, "disk", "full"});
  QCOMPARE(shown.size(), std::size_t{1});
  for (int i = 0; i < 1000; ++i) notifier.add({NotificationClass::Pause, QString("pause %1").arg(i), ""});
  clock.advance(seconds(29));
  notifier.tick();
  QCOMPARE(shown.size(), std::size_t{1});
  clock.advance(seconds(1));
  notifier.tick();
  QCOMPARE(shown.size(), std::size_t{2});
  QVERIFY(shown[1].title.contains("1000"));
  QVERIFY(shown[1].text.count('\n') < static_cast<qsizetype>(Notifier::max_waiting));
  clock.advance(seconds(60));
  notifier.tick();
  QCOMPARE(shown.size(), std::size_t{2});
}

void TestDesktop::pauses_and_their_ends_are_notified() {
  EventNotices notices;
  node::Snapshot snapshot;
  snapshot.pause_reasons = {{"battery", "on battery, 40 %", std::nullopt, true}};
  const auto notice = [&](node::RunState state, const char* status) {
    return notices.of(node::StateChanged{state, std::nullopt}, &snapshot, QString::fromLatin1(status));
  };
  const auto paused = notice(node::RunState::Paused, "Paused: on battery, 40 %");
  QVERIFY(paused.has_value() && paused->about == NotificationClass::Pause);
  QCOMPARE(paused->text, QString("Paused: on battery, 40 %"));
  QVERIFY(!notice(node::RunState::Starting, "Starting").has_value());
  const auto resumed = notice(node::RunState::Training, "Training");
  QVERIFY(resumed.has_value() && resumed->about == NotificationClass::Pause);
  QVERIFY(resumed->title != paused->title);
  QVERIFY(!notice(node::RunState::Training, "Training").has_value());  // once
  // A training that was stopped in a pause does not resume with the next start.
  QVERIFY(notice(node::RunState::Paused, "Paused").has_value());
  for (const auto state :
       {node::RunState::Stopping, node::RunState::Idle, node::RunState::Starting, node::RunState::Training})
    QVERIFY(!notice(state, "").has_value());
}

void TestDesktop::the_users_own_pause_is_not_notified() {
  EventNotices notices;
  for (const char* own : {"user", "snooze"}) {
    node::Snapshot snapshot;
    snapshot.pause_reasons.push_back({own, "you asked for it", std::nullopt, false});
    for (const auto state : {node::RunState::Paused, node::RunState::Training})
      QVERIFY(!notices.of(node::StateChanged{state, std::nullopt}, &snapshot, "Paused").has_value());
  }
}

// They come every few minutes. Work that a person asked for is announced by its page.
void TestDesktop::checkpoints_of_the_core_are_not_notified() {
  EventNotices notices;
  const node::Snapshot snapshot;
  QVERIFY(!notices.of(node::CheckpointWritten{"0000000200-aa"}, &snapshot, "Training").has_value());
  node::AlertRaised alert{{"disk_low", node::Severity::Warning, "The disk is nearly full.", {}}};
  const auto problem = notices.of(alert, nullptr, {});
  QVERIFY(problem.has_value() && problem->about == NotificationClass::Problem);
  alert.alert.severity = node::Severity::Notice;
  QVERIFY(!notices.of(alert, nullptr, {}).has_value());
}

void TestDesktop::sensors_report_values_and_unknowns() {
  SessionSensorList sensors;
  sensors.push_back(std::make_unique<FixedSensor>());
  std::optional<node::SessionSensors> seen;
  SessionReporter reporter(std::move(sensors),
                           [&seen](const node::SessionSensors& values) { seen = values; });
  reporter.start();
  QTRY_VERIFY(seen.has_value());
  QCOMPARE(seen->input_idle->count(), seconds::rep{42});
  QVERIFY(seen->full_screen == true);
  QVERIFY(!seen->metered.has_value());
  // Nothing is reported any more once it was stopped.
  reporter.stop();
  seen.reset();
  reporter.read_now();
  QCoreApplication::processEvents();
  QVERIFY(!seen.has_value());
  QVERIFY(SessionReporter::period < node::sensor_lease);
}

void TestDesktop::answers_from_the_background_are_never_lost() {
  QObject context;
  auto gone = std::make_unique<QObject>();
  int answer = 0, unwanted = 0;
  {
    Background background("ns-test");
    QVERIFY(background.run(
        &context, [] { return 7; }, [&answer](int value) { answer = value; }));
    QVERIFY(background.run(
        gone.get(), [] { return 1; }, [&unwanted](int value) { unwanted = value; }));
  }  // both jobs have run
  gone.reset();
  // The work of an event loop at the end of a pass, here before the answers had their turn.
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  QCOMPARE(answer, 0);
  QCoreApplication::processEvents();
  QCOMPARE(answer, 7);
  QCOMPARE(unwanted, 0);
}

NS_TEST(TestDesktop)
#include "test_desktop.moc"
