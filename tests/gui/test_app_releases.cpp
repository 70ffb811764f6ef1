// Newer versions in the real window: nothing is looked for before the switch is on, then once a day; a signed version
// gives a notice, anything else a refusal; and what is new is shown once. The place is a web server of this test.
#include <QDialog>
#include <QLabel>
#include <QToolButton>

#include "app/gui/install_kind.h"
#include "tests/gui/support/app_fixture.h"
#include "tests/support/release_server.h"
#include "tests/support/signed_release.h"
#include "tests/support/test_main.h"
#include "ui/widgets/toggle_switch.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT
using Requests = std::vector<std::string>;

class TestAppReleases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void nothing_is_fetched_before_the_switch_is_on();
  void a_signed_version_gives_a_notice();
  void it_looks_once_a_day();
  void a_bad_signature_is_called_refused();
  void an_older_version_than_before_is_refused();
  void a_notice_that_was_put_away_stays_away();
  void after_the_upgrade_the_notice_is_gone();
  void without_a_place_the_switch_is_disabled();
  void what_is_new_is_shown_once_after_an_upgrade();
  void what_is_new_is_reachable_from_about();
  void the_kind_of_installation_is_found();
  void the_start_with_the_session_follows_an_upgrade();
  void the_desktops_own_switch_of_the_start_is_kept();

 private:
  void start(const QString& version = "0.1.0", bool has_place = true);
  ui::ToggleSwitch* toggle();
  void switch_on();
  QString note();
  QString notice();
  QDialog* news() { return app_->window().findChild<QDialog*>("news_dialog"); }
  // Long enough for a tick of the app, which would have begun a look or shown a dialog.
  static void wait_for_tick() { QTest::qWait(600); }

  const Patience patience_;
  ManualClock clock_;
  std::unique_ptr<AppFixture> fixture_;
  std::unique_ptr<ReleaseServer> server_;
  std::unique_ptr<gui::Application> app_;
};

void TestAppReleases::init() {
  fixture_ = std::make_unique<AppFixture>();
  server_ = std::make_unique<ReleaseServer>();
  server_->put_release(release_list, signature_newer);
  // A data folder whose disk is away: no assistant opens, and no core starts.
  gui::UserConfig(fixture_->places().config_file).set_data_directory(fixture_->path("unplugged"), "an-id");
}

void TestAppReleases::cleanup() {
  app_.reset();
  server_.reset();
  fixture_.reset();
}

void TestAppReleases::start(const QString& version, bool has_place) {
  app_.reset();
  gui::ApplicationPlaces places = fixture_->places();
  places.version = version;
  if (has_place) {
    places.releases_url = QString::fromStdString(server_->url());
    places.releases_key = release_key;
  }
  gui::ReleaseServices services;
  services.chance = [](std::uint64_t) { return std::uint64_t{0}; };
  app_ = std::make_unique<gui::Application>(*qApp, places, gui::Arguments{}, clock_, gui::SessionSensorList{},
                                            gui::SupervisorLimits{}, services);
  app_->start();
}

ui::ToggleSwitch* TestAppReleases::toggle() {
  app_->window().open_page("settings");
  const auto find = [this] { return app_->window().findChild<ui::ToggleSwitch*>("app_look_for_releases"); };
  return QTest::qWaitFor([&] { return find() != nullptr; }, patience_.left_ms()) ? find() : nullptr;
}

void TestAppReleases::switch_on() {
  ui::ToggleSwitch* look = toggle();
  QVERIFY(look != nullptr && look->isEnabled() && !look->isChecked());
  QTest::mouseClick(look, Qt::LeftButton);
  QVERIFY(look->isChecked());
}

QString TestAppReleases::note() {
  static_cast<void>(toggle());
  const auto* label = app_->window().findChild<QLabel*>("release_note");
  return label != nullptr && label->isVisible() ? label->text() : QString();
}

QString TestAppReleases::notice() {
  const auto* banner = app_->window().findChild<ui::Banner*>("banner_release");
  return banner != nullptr && banner->isVisible() ? banner->content().title : QString();
}

void TestAppReleases::nothing_is_fetched_before_the_switch_is_on() {
  start();
  QVERIFY(toggle() != nullptr && !toggle()->isChecked());
  clock_.advance(std::chrono::hours(24 * 30));
  wait_for_tick();
  QVERIFY(server_->requests().empty());
  QCOMPARE(note(), QString());
}

void TestAppReleases::a_signed_version_gives_a_notice() {
  start();
  switch_on();
  NS_WAIT_FOR(patience_, note().contains("0.3.0"));
  NS_WAIT_FOR(patience_, notice() == "Version 0.3.0 is available; you have 0.1.0");
  QVERIFY(app_->window()
              .findChild<ui::Banner*>("banner_release")
              ->content()
              .text.contains(QString::fromStdString(server_->url())));
  const Requests both{"/releases/SHA256SUMS", "/releases/SHA256SUMS.minisig"};
  QVERIFY(server_->requests() == both);
  const std::set<std::string> headers{"Accept", "Host"};
  QVERIFY(server_->headers() == headers);
  // Off again: nothing is said of it any more.
  QTest::mouseClick(toggle(), Qt::LeftButton);
  QCOMPARE(notice(), QString());
  QCOMPARE(note(), QString());
}

void TestAppReleases::it_looks_once_a_day() {
  start();
  switch_on();
  NS_WAIT_FOR(patience_, note().contains("0.3.0"));
  clock_.advance(std::chrono::hours(23));
  QTest::mouseClick(toggle(), Qt::LeftButton);  // off and on again is no further look
  QTest::mouseClick(toggle(), Qt::LeftButton);
  wait_for_tick();
  QCOMPARE(server_->requests().size(), std::size_t{2});
  start();  // nor is another start
  wait_for_tick();
  QCOMPARE(server_->requests().size(), std::size_t{2});
  NS_WAIT_FOR(patience_, notice().contains("0.3.0"));  // what was found is remembered
  QVERIFY(note().contains("0.3.0"));
  server_->put_release(release_list, signature_newest);
  clock_.advance(std::chrono::hours(1));
  NS_WAIT_FOR(patience_, notice().contains("0.4.0"));
  QCOMPARE(server_->requests().size(), std::size_t{4});
}

void TestAppReleases::a_bad_signature_is_called_refused() {
  server_->put_release("0000  neuroshard.deb\n", signature_newer);
  start();
  switch_on();
  NS_WAIT_FOR(patience_, note().startsWith("Refused"));
  QVERIFY2(note().contains("the file is not the one that was signed"), qPrintable(note()));
  QCOMPARE(notice(), QString());
  start();  // it still is the last word
  QVERIFY(note().startsWith("Refused"));
}

void TestAppReleases::an_older_version_than_before_is_refused() {
  server_->put_release(release_list, signature_newest);
  start();
  switch_on();
  NS_WAIT_FOR(patience_, notice().contains("0.4.0"));
  server_->put_release(release_list, signature_newer);
  clock_.advance(std::chrono::hours(25));
  NS_WAIT_FOR(patience_, note().startsWith("Refused"));
  QVERIFY2(note().contains("0.4.0") && note().contains("0.3.0"), qPrintable(note()));
  NS_WAIT_FOR(patience_, notice().isEmpty());  // nobody is sent there now
}

void TestAppReleases::a_notice_that_was_put_away_stays_away() {
  start();
  switch_on();
  NS_WAIT_FOR(patience_, !notice().isEmpty());
  for (auto* button : app_->window().findChild<ui::Banner*>("banner_release")->findChildren<QToolButton*>())
    if (button->accessibleName() == "Dismiss this message") QTest::mouseClick(button, Qt::LeftButton);
  NS_WAIT_FOR(patience_, notice().isEmpty());
  start();
  NS_WAIT_FOR(patience_, note().contains("0.3.0"));
  QCOMPARE(notice(), QString());
  server_->put_release(release_list, signature_newest);
  clock_.advance(std::chrono::hours(25));
  NS_WAIT_FOR(patience_, notice().contains("0.4.0"));
}

void TestAppReleases::after_the_upgrade_the_notice_is_gone() {
  start();
  switch_on();
  NS_WAIT_FOR(patience_, !notice().isEmpty());
  start("0.3.0");
  QCOMPARE(notice(), QString());
  QVERIFY2(note().startsWith("This version is the newest one"), qPrintable(note()));
}

void TestAppReleases::without_a_place_the_switch_is_disabled() {
  start("0.1.0", false);
  QVERIFY(toggle() != nullptr && !toggle()->isEnabled());
  const auto labels = toggle()->parentWidget()->findChildren<QLabel*>();
  QVERIFY(std::any_of(labels.cbegin(), labels.cend(), [](const QLabel* label) {
    return label->text() == "This build names no place to look for releases.";
  }));
}

void TestAppReleases::what_is_new_is_shown_once_after_an_upgrade() {
  start();  // the very first time: nothing is new
  wait_for_tick();
  QVERIFY(news() == nullptr);
  gui::UserConfig(fixture_->places().config_file).set_newest_run("0.0.9");
  start();
  NS_WAIT_FOR(patience_, news() != nullptr && news()->isVisible());
  const auto labels = news()->findChildren<QLabel*>();
  QVERIFY(std::any_of(labels.cbegin(), labels.cend(),
                      [](const QLabel* label) { return label->text() == "Version 0.1.0"; }));
  QTest::keyClick(news(), Qt::Key_Escape);
  NS_WAIT_FOR(patience_, news() == nullptr);
  start();
  wait_for_tick();
  QVERIFY(news() == nullptr);
  start("0.0.9");  // an older version runs in between
  start();
  wait_for_tick();
  QVERIFY(news() == nullptr);
}

void TestAppReleases::what_is_new_is_reachable_from_about() {
  start();
  app_->show_about();
  auto* button = app_->window().findChild<QAbstractButton*>("about_news");
  QVERIFY(button != nullptr);
  QTest::mouseClick(button, Qt::LeftButton);
  QVERIFY(news() != nullptr && news()->isVisible());
  QTest::keyClick(news(), Qt::Key_Return);  // the button that closes is the default
  NS_WAIT_FOR(patience_, news() == nullptr);
}

void TestAppReleases::the_kind_of_installation_is_found() {
  const auto write = [this](const QString& name, const QByteArray& content) {
    QDir().mkpath(QFileInfo(fixture_->path(name)).path());
    QFile file(fixture_->path(name));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
  };
  const QString program = fixture_->path("usr/bin/neuroshard"), list = fixture_->path("neuroshard.list");
  QVERIFY(gui::install_kind(program, list) == ui::InstallKind::Other);
  write("neuroshard.list", "/.\n/usr/bin\n" + program.toUtf8() + "\n");
  QVERIFY(gui::install_kind(program, list) == ui::InstallKind::Package);
  // A program beside an installed package is not that package.
  QVERIFY(gui::install_kind(fixture_->path("portable/bin/neuroshard"), list) == ui::InstallKind::Other);
  write("portable/AppRun", "#!/bin/sh\n");
  write("portable/bin/neuroshard", "");
  QVERIFY(gui::install_kind(fixture_->path("portable/bin/neuroshard"), list) == ui::InstallKind::Portable);
}

void TestAppReleases::the_start_with_the_session_follows_an_upgrade() {
  const gui::ApplicationPlaces places = fixture_->places();
  const QString former = fixture_->path("former");
  QVERIFY(QDir().mkpath(former));
  const gui::Autostart before(places.autostart_folder, former);
  const gui::Autostart after(places.autostart_folder, places.app_program);
  const auto written = [&places] {
    QFile file(places.autostart_folder + "/neuroshard.desktop");
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
  };
  QVERIFY(before.set(true).ok());
  start();
  QCOMPARE(written(), before.entry());
  // The user deletes the former one while the new one runs, or before.
  QVERIFY(QDir().rmdir(former));
  app_->quit();
  QCOMPARE(written(), after.entry());
  QVERIFY(before.set(true).ok());
  start();
  QCOMPARE(written(), after.entry());
}

void TestAppReleases::the_desktops_own_switch_of_the_start_is_kept() {
  const gui::ApplicationPlaces places = fixture_->places();
  const gui::Autostart entry(places.autostart_folder, places.app_program);
  QVERIFY(entry.set(true).ok());
  start();
  toggle();  // opens the settings
  auto* const start_switch = app_->window().findChild<ui::ToggleSwitch*>("app_autostart");
  auto* const another = app_->window().findChild<ui::ToggleSwitch*>("app_close_to_tray");
  QVERIFY(start_switch != nullptr && start_switch->isChecked() && another != nullptr);
  // As a desktop's settings switch it off.
  QFile file(places.autostart_folder + "/neuroshard.desktop");
  QVERIFY(file.open(QIODevice::Append) && file.write("Hidden=true\n") > 0);
  file.close();
  another->click();
  QVERIFY(!entry.enabled());
  QVERIFY(!start_switch->isChecked());
  // The app's own switch still decides.
  start_switch->click();
  QVERIFY(entry.enabled());
  start_switch->click();
  QVERIFY(!entry.enabled());
}

NS_UI_TEST(TestAppReleases)
#include "test_app_releases.moc"
