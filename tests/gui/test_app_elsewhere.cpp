// The window and a core on another machine: connected to by an invitation, as people do it, seen as what it
// is, steered, and left when the invitation is taken back. The other machine is a second core on loopback
// that shares nothing with the first but the file that its owner hands over.
#include <QLineEdit>
#include <QPushButton>
#include <QTcpSocket>

#include "tests/gui/support/app_test.h"
#include "tests/gui/support/assistant.h"
#include "tests/support/test_main.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppElsewhere : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void an_invited_window_shows_the_other_computer_until_it_is_taken_back();
  void who_may_look_only_has_no_controls();
  void text_of_this_computer_stays_here();
  void a_file_that_is_no_invitation_is_refused();
  void a_missing_disk_says_nothing_about_another_computer();

 private:
  // The other machine's owner, at its own keyboard.
  ProcessResult there(const QStringList& words) const {
    return NodeProcess(words + QStringList{"--data-dir", lab_.path(other_), "--json"}, environment())
        .finish();
  }
  QStringList environment() const { return {"XDG_RUNTIME_DIR=" + lab_.path("runtime-there")}; }
  QString other_ = "there";  // the folder of the other computer's data
  // Through the menu and the dialog of files.
  void choose(const QString& file) {
    QAction* action = fixture_->app().window().findChild<QAction*>("actionElsewhere");
    QVERIFY(action != nullptr && action->isEnabled());
    QVERIFY(choose_path([action] { action->trigger(); }, file));
  }
};

void TestAppElsewhere::an_invited_window_shows_the_other_computer_until_it_is_taken_back() {
  lab_.copy("there");
  QTcpSocket probe;
  QVERIFY(probe.bind(QHostAddress::LocalHost));
  const QString address = QString("127.0.0.1:%1").arg(probe.localPort());
  probe.close();
  const QString file = fixture_->path("from the other computer.json");
  const ProcessResult invited =
      there({"control", "invite", "--listen", address, "--scope", "steer", "--out", file});
  QVERIFY2(invited.ok(), invited.text().constData());
  NodeProcess other({"run", "--cpu-threads", "1", "--data-dir", lab_.path("there"), "--json"}, environment());
  QVERIFY(other.next_line(patience_.left_ms()).has_value());

  QVERIFY(start_running());
  const std::int64_t own_pid = fixture_->core_pid();
  QVERIFY(own_pid != other.pid());
  QVERIFY(!fixture_->banners().contains("another computer"));
  choose(file);
  NS_WAIT_FOR(patience_, fixture_->snapshot()->program.pid == static_cast<std::uint64_t>(other.pid()));
  QVERIFY(fixture_->app().supervisor().status().remote);
  // The machine's name, and the place of its data.
  NS_WAIT_FOR(patience_, fixture_->banners().contains("You are connected to another computer"));
  QVERIFY2(fixture_->banners().contains(lab_.path("there")), qPrintable(fixture_->banners()));
  QVERIFY(!fixture_->banners().contains(fixture_->data()));
  // Its settings: there, the number of threads is fixed by the command line; here it is not.
  fixture_->app().window().open_page("settings");
  NS_WAIT_FOR(patience_, fixture_->find<ui::SettingRow>("setting_cpu_threads") != nullptr &&
                             fixture_->find<ui::SettingRow>("setting_cpu_threads")->isVisible());
  QVERIFY(!fixture_->find<ui::SettingRow>("setting_cpu_threads")->editor()->isEnabled());
  // Its state, steered from here.
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Training"));
  QTest::mouseClick(fixture_->find<QAbstractButton>("contribute"), Qt::LeftButton);
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Paused"));
  const QJsonObject status = json_lines(there({"status"}).out).value(0);
  QCOMPARE(status["contributing"].toBool(true), false);
  QCOMPARE(status["pid"].toInteger(), other.pid());
  QCOMPARE(fixture_->core({"status"})["contributing"].toBool(false), true);  // and nobody else's

  const QString id = json_lines(invited.out).value(0)["id"].toString();
  QVERIFY(there({"control", "revoke", id}).ok());
  NS_WAIT_FOR(patience_, fixture_->banners().contains("refuses the connection"));
  QVERIFY(fixture_->pill().contains("Needs attention"));
  QVERIFY(!fixture_->banners().contains("You are connected to another computer"));
  QVERIFY(other.running());
  NS_WAIT_FOR(patience_, fixture_->press_banner("Return to this computer"));
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running && fixture_->snapshot() &&
                             fixture_->snapshot()->program.pid == static_cast<std::uint64_t>(own_pid));
  QVERIFY(!fixture_->app().supervisor().status().remote);
  QCOMPARE(fixture_->banners(), QString());
  QVERIFY(there({"stop"}).ok());
}

void TestAppElsewhere::who_may_look_only_has_no_controls() {
  other_ = "watched";
  lab_.copy(other_);
  QTcpSocket probe;
  QVERIFY(probe.bind(QHostAddress::LocalHost));
  const QString address = QString("127.0.0.1:%1").arg(probe.localPort());
  probe.close();
  const QString file = fixture_->path("to look.json");
  QVERIFY(there({"control", "invite", "--listen", address, "--out", file}).ok());  // look is the default
  NodeProcess other({"run", "--cpu-threads", "1", "--data-dir", lab_.path(other_), "--json"}, environment());
  QVERIFY(other.next_line(patience_.left_ms()).has_value());
  QVERIFY(start_running());
  choose(file);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("You are looking at another computer"));
  QVERIFY2(fixture_->banners().contains("the scope \"steer\""), qPrintable(fixture_->banners()));
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Training"));
  QVERIFY(!fixture_->find<QAbstractButton>("contribute")->isEnabled());
  QVERIFY(!fixture_->find<QAction>("finish")->isEnabled());
  QVERIFY(other.running());
  NS_WAIT_FOR(patience_, fixture_->press_banner("Return to this computer"));
  QVERIFY(runs());
  QVERIFY(fixture_->find<QAbstractButton>("contribute")->isEnabled());
  QVERIFY(there({"stop"}).ok());
}

// A path of this computer means nothing on the other one, or something else.
void TestAppElsewhere::text_of_this_computer_stays_here() {
  other_ = "steered";
  lab_.copy(other_);
  QTcpSocket probe;
  QVERIFY(probe.bind(QHostAddress::LocalHost));
  const QString address = QString("127.0.0.1:%1").arg(probe.localPort());
  probe.close();
  const QString file = fixture_->path("to steer.json");
  QVERIFY(there({"control", "invite", "--listen", address, "--scope", "steer", "--out", file}).ok());
  NodeProcess other({"run", "--cpu-threads", "1", "--data-dir", lab_.path(other_), "--json"}, environment());
  QVERIFY(other.next_line(patience_.left_ms()).has_value());
  QVERIFY(start_running());
  const std::int64_t own_pid = fixture_->core_pid();
  choose(file);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("You are connected to another computer"));
  gui::Arguments arguments;
  arguments.text = fixture_->path("text");
  fixture_->app().called(arguments);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("The text was not added"));

  fixture_->app().open_setup();
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.shows<QPushButton>("setupNext") && assistant.next());
  QVERIFY(assistant.shows<QLineEdit>("setupFolder") && assistant.next());
  QVERIFY(assistant.shows<QRadioButton>("setupKeep") && assistant.next());
  QVERIFY(assistant.shows<QRadioButton>("setupLimitsKeep") && assistant.next());
  QVERIFY(assistant.shows<QLineEdit>("setupText"));
  assistant.get<QLineEdit>("setupText")->setText(arguments.text);
  QVERIFY(assistant.next() && assistant.closes());
  // The window shows this computer again, whose core runs on and trains on the text.
  const auto trains_here = [&] {
    const auto view = fixture_->snapshot();
    return !fixture_->app().supervisor().status().remote && fixture_->phase() == gui::CorePhase::Running &&
           view && QString::fromStdString(view->training.data_source) == arguments.text;
  };
  NS_WAIT_FOR(patience_, trains_here());
  QCOMPARE(fixture_->core_pid(), own_pid);
  QVERIFY(other.running());
  QVERIFY(there({"stop"}).ok());
}

void TestAppElsewhere::a_file_that_is_no_invitation_is_refused() {
  const QString file = letter();
  QVERIFY(!file.isEmpty() && start_running());
  const std::int64_t own_pid = fixture_->core_pid();
  choose(file);
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Failed);
  QVERIFY2(fixture_->banners().contains("is not an invitation"), qPrintable(fixture_->banners()));
  NS_WAIT_FOR(patience_, fixture_->press_banner("Return to this computer"));
  QVERIFY(runs());
  QCOMPARE(fixture_->core_pid(), own_pid);
}

void TestAppElsewhere::a_missing_disk_says_nothing_about_another_computer() {
  QVERIFY(QDir().rename(fixture_->data(), fixture_->path("unplugged")));
  const auto asks = [this] { return fixture_->banners().contains("disk is missing"); };
  const QString file = letter();
  QVERIFY(!file.isEmpty());
  fixture_->start();
  NS_WAIT_FOR(patience_, asks());
  choose(file);
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Failed);
  QVERIFY2(fixture_->banners().contains("is not an invitation"), qPrintable(fixture_->banners()));
  QVERIFY2(!asks(), qPrintable(fixture_->banners()));
  NS_WAIT_FOR(patience_, fixture_->press_banner("Return to this computer"));
  NS_WAIT_FOR(patience_, asks());
  QVERIFY(QDir().rename(fixture_->path("unplugged"), fixture_->data()));
  QVERIFY(runs());
}

NS_UI_TEST(TestAppElsewhere)
#include "test_app_elsewhere.moc"
