// The window on the desktop, with the real core behind it: it comes back as it was left, and where no tray
// is, it is never lost.
#include "tests/gui/support/app_test.h"
#include "tests/gui/support/assistant.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppWindow : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void it_comes_back_as_it_was_left();
  void without_a_tray_it_is_never_lost();
  void a_new_folder_of_the_command_line_is_asked_about_once_and_not_remembered();

 private:
  QString answer(const std::function<void()>& act, const QString& name, const QString& button) {
    return answer_question(patience_, act, name, button);
  }
};

void TestAppWindow::it_comes_back_as_it_was_left() {
  QVERIFY(start_running());
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  QSize size = fixture_->app().window().size();
  fixture_->app().window().resize(700, 520);
  QVERIFY(size != fixture_->app().window().size());
  size = fixture_->app().window().size();
  fixture_->app().window().open_page("checkpoints");
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, !finished.isEmpty());
  fixture_->start();
  QCOMPARE(fixture_->app().window().current_page(), QString("checkpoints"));
  NS_WAIT_FOR(patience_, fixture_->app().window().size() == size);
}

void TestAppWindow::without_a_tray_it_is_never_lost() {
  gui::Arguments arguments;
  arguments.minimized = true;  // as the session starts it: in the tray, where there is one
  fixture_->start(arguments);
  QVERIFY(!fixture_->app().tray().available());
  QVERIFY(fixture_->app().window().isVisible() && fixture_->app().window().isMinimized());
  QVERIFY(runs());
  fixture_->app().called({});  // a second start shows it
  QVERIFY(fixture_->app().window().isVisible() && !fixture_->app().window().isMinimized());
  // Closing asks, and neither hides the window nor ends the core unasked.
  const auto close = [this] { fixture_->app().window().close(); };
  QVERIFY(answer(close, "closeQuestion", "").contains("minimised"));
  QVERIFY(fixture_->app().window().isVisible() && !fixture_->app().window().isMinimized());
  QVERIFY(!answer(close, "closeQuestion", "Keep running minimised").isEmpty());
  QVERIFY(fixture_->app().window().isVisible() && fixture_->app().window().isMinimized());
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
  // Stop and Quit stand in the window.
  QVERIFY(fixture_->find<QAction>("actionQuit") != nullptr && fixture_->find<QAction>("finish") != nullptr);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  QVERIFY(!answer(close, "closeQuestion", "Quit").isEmpty());
  NS_WAIT_FOR(patience_, !finished.isEmpty());
}

void TestAppWindow::a_new_folder_of_the_command_line_is_asked_about_once_and_not_remembered() {
  gui::Arguments arguments;
  arguments.data_directory = fixture_->path("named");
  fixture_->start(arguments);  // another folder was set up before
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.shows<QPushButton>("setupNext") && assistant.next());
  QVERIFY(assistant.shows<QLineEdit>("setupFolder"));
  QCOMPARE(assistant.get<QLineEdit>("setupFolder")->text(), arguments.data_directory);
  assistant.dialog()->close();
  QVERIFY(assistant.closes());
  QVERIFY2(fixture_->banners().contains("not set up yet"), qPrintable(fixture_->banners()));
  // For longer than the app waits between two looks for its data.
  const auto period = std::chrono::milliseconds(gui::Application::data_period);
  QVERIFY(!QTest::qWaitFor([&] { return assistant.dialog() != nullptr; },
                           static_cast<int>(period.count()) + 500));
  QVERIFY(fixture_->phase() == gui::CorePhase::Closed && !QFileInfo::exists(arguments.data_directory));

  QVERIFY(fixture_->press_banner("Set up"));
  QVERIFY(assistant.shows<QPushButton>("setupNext") && assistant.next());
  QVERIFY(assistant.shows<QLineEdit>("setupFolder") && assistant.next());
  QVERIFY(assistant.make_wallet() && assistant.next());
  QVERIFY(assistant.shows<QLineEdit>("setupText"));
  assistant.get<QRadioButton>("setupSolo")->setChecked(true);  // without text nothing is trained
  QVERIFY(assistant.next() && assistant.closes() && runs());
  QCOMPARE(fixture_->snapshot()->identity.wallet_id, assistant.wallet_id());
  QCOMPARE(gui::UserConfig(fixture_->places().config_file).data_directory(), fixture_->data());
}

NS_UI_TEST(TestAppWindow)
#include "test_app_window.moc"
