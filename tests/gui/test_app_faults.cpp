// What the app does when things go wrong: the core is killed, crashes again and again, is of another version;
// the disk with the data is gone; a second app is started.
#include "core/control/service_module.h"
#include "core/crypto/entropy.h"
#include "core/storage/file_env.h"
#include "tests/gui/support/app_fixture.h"
#include "tests/support/fake_node.h"
#include "ui/wizard/setup_dialog.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int long_ms = 50'000;

void kill_now(std::int64_t pid) {
  QCOMPARE(QProcess::execute("kill", {"-9", QString::number(pid)}), 0);
}

}  // namespace

class TestAppFaults : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<AppFixture>(); }
  void cleanup() { fixture_.reset(); }
  void a_killed_core_is_reported_and_started_again();
  void three_crashes_lead_to_safe_mode();
  void a_missing_disk_is_asked_for();
  void a_disk_that_goes_while_it_runs_is_asked_for();
  void a_core_of_another_version_is_told_what_to_do();
  void a_core_of_somebody_else_goes_on_after_quit();
  void an_app_that_died_leaves_the_core_and_the_next_knows_it();

 private:
  void start_running() {
    const QByteArray problem = fixture_->prepare_data();
    QVERIFY2(problem.isEmpty(), problem.constData());
    fixture_->start();
    QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);
  }
  std::unique_ptr<AppFixture> fixture_;
};

void TestAppFaults::a_killed_core_is_reported_and_started_again() {
  start_running();
  const std::int64_t first = fixture_->core_pid();
  kill_now(first);
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->banners().contains("crashed"), long_ms);
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->phase() == gui::CorePhase::Running && fixture_->core_pid() != first,
                           long_ms);
  QVERIFY(fixture_->banners().contains("started again"));
  QVERIFY(fixture_->app().bridge().attached());
}

void TestAppFaults::three_crashes_lead_to_safe_mode() {
  start_running();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t pid = fixture_->core_pid();
    kill_now(pid);
    QTRY_VERIFY_WITH_TIMEOUT(fixture_->phase() == gui::CorePhase::Running && fixture_->core_pid() != pid,
                             long_ms);
  }
  QVERIFY(fixture_->app().supervisor().status().safe_mode);
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->snapshot()->safe_mode, long_ms);
  QVERIFY2(fixture_->banners().contains("Safe mode"), qPrintable(fixture_->banners()));
  QVERIFY(fixture_->press_banner("Try normally again"));
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->phase() == gui::CorePhase::Running && !fixture_->snapshot()->safe_mode,
                           long_ms);
  QVERIFY(!fixture_->banners().contains("Safe mode"));
}

void TestAppFaults::a_missing_disk_is_asked_for() {
  const QByteArray problem = fixture_->prepare_data();
  QVERIFY2(problem.isEmpty(), problem.constData());
  QVERIFY(QDir().rename(fixture_->data(), fixture_->path("unplugged")));
  fixture_->start();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->banners().contains("disk is missing"), long_ms);
  QVERIFY(fixture_->app().window().findChild<ui::SetupDialog*>() == nullptr);  // never a first run
  QVERIFY(!QDir(fixture_->data()).exists());                                   // and nothing is begun anew
  // The mount point alone is not the disk.
  QVERIFY(QDir().mkpath(fixture_->data()));
  QVERIFY(fixture_->press_banner("Look again"));
  QVERIFY(fixture_->banners().contains("disk is missing"));
  QVERIFY(QDir().rmdir(fixture_->data()));
  QVERIFY(QDir().rename(fixture_->path("unplugged"), fixture_->data()));
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);  // by itself
  QVERIFY(!fixture_->banners().contains("disk is missing"));
}

void TestAppFaults::a_disk_that_goes_while_it_runs_is_asked_for() {
  start_running();
  QTRY_VERIFY_WITH_TIMEOUT(!fixture_->snapshot()->identity.instance_id.empty(), long_ms);
  QVERIFY(QDir().rename(fixture_->data(), fixture_->path("unplugged")));
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->banners().contains("disk is missing"), long_ms);
  kill_now(fixture_->core_pid());
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Closed,
                            long_ms);  // not started without its data
  QVERIFY(!QDir(fixture_->data()).exists());
  QVERIFY(QDir().rename(fixture_->path("unplugged"), fixture_->data()));
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);
}

void TestAppFaults::a_core_of_another_version_is_told_what_to_do() {
  const QByteArray problem = fixture_->prepare_data();
  QVERIFY2(problem.isEmpty(), problem.constData());
  const auto service = control::load_service();
  QVERIFY2(service.ok(), service.error().message.c_str());
  testing::FakeNode node;
  const auto files = storage::make_posix_file_env();
  crypto::SystemEntropy entropy;
  const SystemClock clock;
  NullLogger logger;
  control::ServerOptions options;
  options.data_directory = fixture_->data().toStdString();
  options.runtime_directory = fixture_->runtime().toStdString();
  options.build = "9.0.0";
  options.speaks = {control::version.major + 1, 0};
  const auto server = service->start_server(node, {*files, entropy, clock, logger}, options);
  QVERIFY2(server.ok(), server.error().message.c_str());
  fixture_->start();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->banners().contains("another version"), long_ms);
  QCOMPARE(fixture_->phase(), gui::CorePhase::WrongVersion);
  QVERIFY2(fixture_->banners().contains("upgrade") || fixture_->banners().contains("newer"),
           qPrintable(fixture_->banners()));
  QVERIFY(node.commands().empty());
}

void TestAppFaults::a_core_of_somebody_else_goes_on_after_quit() {
  const QByteArray problem = fixture_->prepare_data();
  QVERIFY2(problem.isEmpty(), problem.constData());
  NodeProcess other({"run", "--data-dir", fixture_->data(), "--json"});
  QVERIFY(other.next_line().has_value());
  fixture_->start();
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);
  QVERIFY(!fixture_->app().supervisor().status().ours);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20'000);
  QVERIFY(other.running());
  QCOMPARE(fixture_->core({"status"})["running"].toBool(), true);
}

void TestAppFaults::an_app_that_died_leaves_the_core_and_the_next_knows_it() {
  start_running();
  const std::int64_t pid = fixture_->core_pid();
  fixture_->stop_app();  // without quitting
  QVERIFY(platform::find_process(pid).has_value());
  fixture_->start();
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);
  QCOMPARE(fixture_->core_pid(), pid);
  QVERIFY(fixture_->app().supervisor().status().ours);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20'000);
  QVERIFY(!platform::find_process(pid).has_value());
}

QTEST_MAIN(TestAppFaults)
#include "test_app_faults.moc"
