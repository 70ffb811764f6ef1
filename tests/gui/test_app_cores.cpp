// The app and cores that it did not start, or that are not of its version: which one is used, what the app
// shows, and who is ended by Quit. A real core with a small network.
#include <signal.h>

#include <QAction>
#include <QPointer>
#include <QProgressDialog>
#include <QtTest>

#include "core/base/log.h"
#include "core/control/service.h"
#include "core/crypto/entropy.h"
#include "core/network_module/network_module.h"
#include "core/storage/file_env.h"
#include "tests/gui/support/app_test.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppCores : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void a_core_of_another_version_is_told_what_to_do_data();
  void a_core_of_another_version_is_told_what_to_do();
  void a_core_of_somebody_else_goes_on_after_quit();
  void text_of_a_start_reaches_a_core_that_runs();
  void another_folder_gets_no_text_of_the_former_data();
  void another_folder_gets_no_text_of_the_former();
  void an_app_that_died_leaves_the_core_and_the_next_knows_it();
  void a_core_that_takes_longer_is_told_before_the_window_goes();
};

void TestAppCores::a_core_of_another_version_is_told_what_to_do_data() {
  QTest::addColumn<int>("newer");
  QTest::newRow("newer") << 1;
  QTest::newRow("older") << -1;
}

void TestAppCores::a_core_of_another_version_is_told_what_to_do() {
  QFETCH(int, newer);
  const auto network = network_module::load_network_module();
  QVERIFY2(network.ok(), network.ok() ? "" : network.error().message.c_str());
  testing::FakeNode node;
  const auto files = storage::make_posix_file_env();
  crypto::SystemEntropy entropy;
  const SystemClock clock;
  NullLogger logger;
  control::ServerOptions options;
  options.data_directory = fixture_->data().toStdString();
  options.runtime_directory = fixture_->runtime().toStdString();
  options.build = "9.0.0";
  options.speaks = {control::version.major + static_cast<std::uint32_t>(newer), 0};
  const auto server = network->start_server(node, {*files, entropy, clock, logger}, options);
  QVERIFY2(server.ok(), server.ok() ? "" : server.error().message.c_str());
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->banners().contains("another version"));
  QCOMPARE(fixture_->phase(), gui::CorePhase::WrongVersion);
  QVERIFY(fixture_->pill().contains("Needs attention"));
  const std::string advice = fixture_->app().supervisor().status().error.describe();
  QVERIFY2(fixture_->banners().contains(QString::fromStdString(advice)), qPrintable(fixture_->banners()));
  QVERIFY2(fixture_->banners().contains("upgrade") || fixture_->banners().contains("newer"),
           qPrintable(fixture_->banners()));
  QVERIFY(node.commands().empty());
}

void TestAppCores::a_core_of_somebody_else_goes_on_after_quit() {
  NodeProcess other({"run", "--data-dir", fixture_->data(), "--json"});
  QVERIFY(other.next_line(patience_.left_ms()).has_value());
  QVERIFY(start_running());
  QVERIFY(!fixture_->app().supervisor().status().ours);
  QCOMPARE(fixture_->core_pid(), other.pid());
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, finished.count() == 1);
  QVERIFY(other.running());
  QCOMPARE(fixture_->core({"status"})["pid"].toInteger(), other.pid());
}

// By the first start and by a second one: the core has read its own command line before.
void TestAppCores::text_of_a_start_reaches_a_core_that_runs() {
  NodeProcess other({"run", "--data-dir", fixture_->data(), "--json"});
  QVERIFY(other.next_line(patience_.left_ms()).has_value());
  QVERIFY(QDir().mkpath(fixture_->path("more")));
  QFile more(fixture_->path("more/tale.txt"));
  QVERIFY(more.open(QIODevice::WriteOnly) && more.write(made_up_text(8, 60'000)) > 0);
  more.close();
  const auto trains_on = [this](const QString& folder) {
    const auto trains = [&] {
      const auto view = fixture_->snapshot();
      return view && view->state == node::RunState::Training &&
             QString::fromStdString(view->training.data_source) == folder;
    };
    return QTest::qWaitFor(trains, patience_.left_ms());
  };
  gui::Arguments arguments;
  arguments.text = fixture_->path("text");
  QVERIFY(start_running(arguments));
  QVERIFY(trains_on(arguments.text));
  arguments.text = fixture_->path("more");
  fixture_->app().called(arguments);
  QVERIFY(trains_on(arguments.text));
  QCOMPARE(fixture_->core_pid(), other.pid());
  QCOMPARE(fixture_->banners(), QString());
  // Nothing that is no text is taken, and the window says so.
  arguments.text = fixture_->path("nothing here");
  fixture_->app().called(arguments);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("can't read the new text"));
}

void TestAppCores::another_folder_gets_no_text_of_the_former_data() {
  QTest::addColumn<bool>("named");
  QTest::newRow("of the settings") << false;
  QTest::newRow("of the command line") << true;
}

// The core would take it into its dataset for good.
void TestAppCores::another_folder_gets_no_text_of_the_former() {
  QFETCH(bool, named);
  const QString text = fixture_->path("text"), other = fixture_->path("other");
  std::filesystem::copy(lab_.path("origin").toStdString(), other.toStdString(),
                        std::filesystem::copy_options::recursive);
  const auto config = [this] { return gui::UserConfig(fixture_->places().config_file); };
  config().set_text_folder(text);
  gui::Arguments arguments;
  if (named) {
    arguments.data_directory = fixture_->data();
    arguments.text = text;
  }
  QVERIFY(start_running(arguments));
  QCOMPARE(fixture_->app().supervisor().launched_text(), text);
  auto* action = fixture_->app().window().findChild<QAction*>("actionData");
  QVERIFY(action != nullptr);
  QVERIFY(choose_path([action] { action->trigger(); }, other));
  const auto moved = [&] {
    const auto view = fixture_->snapshot();
    return fixture_->phase() == gui::CorePhase::Running && view &&
           QString::fromStdString(view->program.data_directory) == other;
  };
  NS_WAIT_FOR(patience_, moved());
  QCOMPARE(fixture_->app().supervisor().launched_text(), QString());
  // A folder of the command line leaves what was chosen for all starts.
  QCOMPARE(config().data_directory(), named ? fixture_->data() : other);
  QCOMPARE(config().text_folder(), named ? text : QString());
}

void TestAppCores::an_app_that_died_leaves_the_core_and_the_next_knows_it() {
  QVERIFY(start_running());
  const std::int64_t pid = fixture_->core_pid();
  fixture_->stop_app();  // without quitting
  QVERIFY(platform::find_process(pid).has_value());
  QVERIFY(start_running());
  QCOMPARE(fixture_->core_pid(), pid);
  QVERIFY(fixture_->app().supervisor().status().ours);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, finished.count() == 1);
  // Its end was waited for, not only its goodbye.
  QVERIFY(!platform::find_process(pid).has_value());
}

void TestAppCores::a_core_that_takes_longer_is_told_before_the_window_goes() {
  fixture_->give_up_stopping_after(std::chrono::seconds(1));
  QVERIFY(start_running());
  const auto pid = static_cast<pid_t>(fixture_->core_pid());
  QCOMPARE(::kill(pid, SIGSTOP), 0);  // as one that writes to a slow disk
  QSignalSpy quitting(&fixture_->app(), &gui::Application::quitting);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  QCOMPARE(quitting.count(), 1);  // a second start waits from now on
  QPointer<QProgressDialog> dialog = fixture_->app().window().findChild<QProgressDialog*>("stopping");
  QVERIFY(dialog != nullptr && dialog->isVisible());
  QVERIFY(dialog->labelText().contains("last checkpoint"));
  QVERIFY(dialog->labelText().contains("ends by itself"));  // before somebody decides not to wait
  NS_WAIT_FOR(patience_,
              dialog->labelText() == QString("The core finishes its last checkpoint and ends by itself."));
  QVERIFY(dialog->isVisible());
  QCOMPARE(finished.count(), 0);
  QVERIFY(platform::find_process(pid).has_value());
  // Nobody has to be there to press a button.
  NS_WAIT_FOR(patience_, finished.count() == 1);
  QCOMPARE(finished[0][0].toInt(), 0);
  QCOMPARE(::kill(pid, SIGCONT), 0);
  // The message is true.
  NS_WAIT_FOR(patience_, !platform::find_process(pid).has_value());
  QCOMPARE(finished.count(), 1);
}

NS_UI_TEST(TestAppCores)
#include "test_app_cores.moc"
