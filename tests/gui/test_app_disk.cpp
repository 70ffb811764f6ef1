// The app when its data disk is not there: it asks for it, starts nothing anew, and goes on by itself when
// the disk is back. A real core with a small network; a folder that is moved away stands for the disk.
#include <QtTest>

#include "tests/gui/support/app_test.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"
#include "ui/wizard/setup_dialog.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppDisk : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void a_missing_disk_is_asked_for();
  void a_disk_that_goes_while_it_runs_is_asked_for();
  void a_wallet_that_is_gone_is_not_replaced_unseen();
  void only_a_core_that_runs_names_the_folder();

 private:
  bool unplug() { return QDir().rename(fixture_->data(), fixture_->path("unplugged")); }
  bool plug_in() { return QDir().rename(fixture_->path("unplugged"), fixture_->data()); }
  bool asks() { return fixture_->banners().contains("disk is missing"); }
};

void TestAppDisk::a_missing_disk_is_asked_for() {
  QVERIFY(unplug());
  fixture_->start();
  NS_WAIT_FOR(patience_, asks());
  QVERIFY(fixture_->pill().contains("Needs attention"));
  QVERIFY(fixture_->app().window().findChild<ui::SetupDialog*>() == nullptr);  // never a first run
  QVERIFY(!QDir(fixture_->data()).exists());                                   // and nothing is begun anew
  // The mount point alone is not the disk.
  QVERIFY(QDir().mkpath(fixture_->data()));
  QVERIFY(fixture_->press_banner("Look again"));
  QVERIFY(!QTest::qWaitFor([this] { return !asks(); }, 300));
  QCOMPARE(fixture_->phase(), gui::CorePhase::Closed);
  QVERIFY(QDir(fixture_->data()).isEmpty());
  QVERIFY(QDir().rmdir(fixture_->data()));
  QVERIFY(plug_in());
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);  // by itself
  QVERIFY(!asks());
}

void TestAppDisk::a_disk_that_goes_while_it_runs_is_asked_for() {
  QVERIFY(start_running());
  NS_WAIT_FOR(patience_, !fixture_->snapshot()->identity.instance_id.empty());
  QVERIFY(unplug());
  NS_WAIT_FOR(patience_, asks());
  kill_now(fixture_->core_pid());
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Closed);  // not started without its data
  QVERIFY(!QDir(fixture_->data()).exists());
  QVERIFY(plug_in());
  QVERIFY(runs());
  QVERIFY(!asks());
}

void TestAppDisk::a_wallet_that_is_gone_is_not_replaced_unseen() {
  const QString wallet = fixture_->data() + "/wallet.keystore";
  QVERIFY(QFile::remove(wallet));
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Failed);
  QVERIFY2(fixture_->banners().contains("no wallet found in " + fixture_->data()),
           qPrintable(fixture_->banners()));
  QVERIFY(!QFile::exists(wallet));
}

// A core that ends still reports, when the user has chosen another folder.
void TestAppDisk::only_a_core_that_runs_names_the_folder() {
  QVERIFY(unplug());
  fixture_->start();
  NS_WAIT_FOR(patience_, asks());
  const auto core = std::make_shared<testing::FakeNode>();
  core->publish([](node::Snapshot& view) {
    view.program.data_directory = "/another";
    view.identity.instance_id = "01234567-89ab-4cde-8f01-23456789abcd";
  });
  fixture_->app().bridge().attach(core);
  QVERIFY(fixture_->snapshot() != nullptr);
  QCOMPARE(gui::UserConfig(fixture_->places().config_file).data_directory(), fixture_->data());
  fixture_->app().bridge().attach(nullptr);
}

NS_UI_TEST(TestAppDisk)
#include "test_app_disk.moc"
