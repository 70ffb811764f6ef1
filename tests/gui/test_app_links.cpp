// Links from a browser or another program, with the real core behind the window: nothing happens before a
// yes, and with one what the link says.

#include "tests/gui/support/app_test.h"
#include "tests/gui/support/assistant.h"
#include "tests/support/test_main.h"
#include "tests/support/wallet_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppLinks : public AppTest {
  Q_OBJECT
 public:
  TestAppLinks() : AppTest(110'000) {}

 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void a_link_to_another_core_waits_for_a_yes();
  void an_invitation_to_a_network_waits_for_a_yes();
  void with_a_yes_it_joins_and_stays();
  void a_wallet_that_was_begun_is_asked_for_again();
  void a_first_start_by_invitation_joins_in_its_own_folder();
  void a_first_start_that_declines_trains_alone();
  void it_says_that_members_hold_parts();
  void a_link_that_can_not_be_followed_changes_nothing();
  void a_damaged_invitation_is_refused_in_words();

 private:
  // The arguments that the running app receives from a second start.
  QString hand_over(const QString& link, const QString& answer) {
    gui::Arguments arguments;
    arguments.link = link;
    return answer_question(
        patience_, [&] { fixture_->app().called(arguments); }, "linkQuestion", answer);
  }
  QString invitation(const QStringList& more = {});
  // A core of ours answers in this folder.
  bool runs_in(const QString& folder) {
    const auto here = [&] {
      const auto view = fixture_->snapshot();
      return fixture_->phase() == gui::CorePhase::Running && view &&
             QString::fromStdString(view->program.data_directory) == folder;
    };
    return QTest::qWaitFor(here, patience_.left_ms());
  }
  // The core's wallet is the one whose words the user has seen, and nobody wrote words anywhere else.
  void expect_wallet_of(const Assistant& assistant) {
    QCOMPARE(fixture_->snapshot()->identity.wallet_id, assistant.wallet_id());
    const QByteArray said = content_of(fixture_->runtime() + "/core-output.txt");
    QVERIFY2(phrases_in(said).isEmpty(), "the words of a wallet are in the core's output");
  }
};

void TestAppLinks::a_link_to_another_core_waits_for_a_yes() {
  const QString file = letter();
  QVERIFY(!file.isEmpty() && start_running());
  const std::int64_t own_pid = fixture_->core_pid();
  const QString link = "neuroshard:attach?file=" + file;
  QVERIFY(hand_over(link, "").contains(file));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running && !fixture_->app().supervisor().status().remote);
  QCOMPARE(fixture_->core_pid(), own_pid);
  QCOMPARE(fixture_->banners(), QString());
  // With a yes it is followed; that file is no invitation, and the app says so.
  QVERIFY(hand_over(link, "Connect").contains(file));
  NS_WAIT_FOR(patience_, fixture_->banners().contains("is not an invitation"));
}

// Into a network that this test makes; empty: that did not work.
QString TestAppLinks::invitation(const QStringList& more) {
  const QString profile = fixture_->path("invited.json");
  const ProcessResult created = run_node(
      QStringList{"network", "create", "--from", "solo", "--name", "invited", "--out", profile, "--force"} +
      more);
  if (!created.ok()) return {};
  const ProcessResult invited = run_node({"network", "invite", "--profile", profile, "--json"});
  return json_lines(invited.out).value(0)["link"].toString();
}

void TestAppLinks::an_invitation_to_a_network_waits_for_a_yes() {
  const QString link = invitation();
  QVERIFY2(link.startsWith("neuroshard:join"), qPrintable(link));
  QVERIFY(start_running());
  const QString asked = hand_over(link, "");
  QVERIFY2(!asked.contains("A round of"), qPrintable(asked));
  const QString of_rounds = hand_over(invitation({"--h", "20"}), "");
  QVERIFY2(of_rounds.contains(
               QRegularExpression("A round of 4 members: at most [0-9.]+.[KMG]iB written to the disk, "
                                  "[0-9.]+.[KMG]iB sent, [0-9.]+.[KMG]iB received")),
           qPrintable(of_rounds));
  QVERIFY2(asked.contains("invited") && asked.contains(fixture_->data() + "-invited"), qPrintable(asked));
  // Nothing was made, and the core that runs goes on.
  QVERIFY(!QFileInfo::exists(fixture_->data() + "-invited"));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
}

void TestAppLinks::with_a_yes_it_joins_and_stays() {
  const QString link = invitation(), folder = fixture_->data() + "-invited";
  QVERIFY2(link.startsWith("neuroshard:join"), qPrintable(link));
  QVERIFY(start_running());
  const std::int64_t before = fixture_->core_pid();
  QVERIFY(!hand_over(link, "Join").isEmpty());
  // The folder of the network gets a wallet first; until then the core that runs goes on.
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.make_wallet());
  QCOMPARE(fixture_->core_pid(), before);
  assistant.get<QRadioButton>("setupLight")->setChecked(true);
  QVERIFY(assistant.next() && assistant.closes());
  // The core that ran has ended, one of the new network answers, in a folder of its own.
  const auto joined = [&] {
    const auto view = fixture_->snapshot();
    return fixture_->phase() == gui::CorePhase::Running && fixture_->core_pid() != before && view &&
           QString::fromStdString(view->program.data_directory) == folder;
  };
  NS_WAIT_FOR(patience_, joined());
  QVERIFY(QProcess::execute("kill", {"-0", QString::number(before)}) != 0);
  const ProcessResult shown = run_node({"network", "show", link, "--json"});
  const auto view = fixture_->snapshot();
  QCOMPARE(QString::fromStdString(view->program.network_id),
           json_lines(shown.out).value(0)["network_id"].toString());
  QCOMPARE(fixture_->banners(), QString());
  expect_wallet_of(assistant);
  QVERIFY(content_of(folder + "/settings.toml").contains("memory_limit"));
  // It stays there: the next start needs no link and asks nothing.
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, !finished.isEmpty());
  fixture_->start();
  NS_WAIT_FOR(patience_, joined());
  // The earlier data is untouched.
  const ProcessResult kept = run_node({"checkpoint", "list", "--data-dir", fixture_->data(), "--json"});
  QVERIFY2(kept.ok() && !json_lines(kept.out).isEmpty(), kept.text().constData());
}

void TestAppLinks::a_wallet_that_was_begun_is_asked_for_again() {
  const QString link = invitation(), folder = fixture_->data() + "-invited";
  QVERIFY(start_running());
  QVERIFY(!hand_over(link, "Join").isEmpty());
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.make_wallet());
  assistant.dialog()->close();
  QVERIFY(assistant.closes());
  QVERIFY(!QFileInfo::exists(folder + "/profile.json"));
  QCOMPARE(fixture_->banners(), QString());
  // The link again: its node is no member yet, so the assistant asks.
  QVERIFY(!hand_over(link, "Join").isEmpty());
  QVERIFY(assistant.shows<QRadioButton>("setupKeep"));
  QVERIFY(assistant.get<QRadioButton>("setupKeep")
              ->text()
              .contains(QString::fromStdString(assistant.wallet_id())));
  QVERIFY(assistant.next() && assistant.shows<QRadioButton>("setupLight"));
  QVERIFY(assistant.next() && assistant.closes());
  QVERIFY(runs_in(folder));
  expect_wallet_of(assistant);
}

void TestAppLinks::a_first_start_by_invitation_joins_in_its_own_folder() {
  fixture_ = std::make_unique<AppFixture>();  // nothing is set up
  const QString link = invitation();
  fixture_->start();
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.shows<QPushButton>("setupNext"));
  // The link comes from a browser, while the assistant waits.
  QVERIFY(!hand_over(link, "Join").isEmpty());
  QVERIFY(assistant.next());  // look
  QVERIFY(assistant.shows<QLineEdit>("setupFolder") && assistant.next());
  QVERIFY(assistant.make_wallet());
  QVERIFY(assistant.next());  // limits
  QVERIFY(assistant.shows<QRadioButton>("setupJoin"));
  QVERIFY(assistant.get<QRadioButton>("setupJoin")->isChecked());
  QCOMPARE(assistant.get<QLineEdit>("setupInvitation")->text(), link);
  const QString asked = answer_question(
      patience_, [&] { assistant.next(); }, "linkQuestion", "Join");
  QVERIFY2(asked.contains("Data folder: " + fixture_->data() + '\n'), qPrintable(asked));
  QVERIFY(runs_in(fixture_->data()));
  QCOMPARE(fixture_->snapshot()->program.network, std::string("invited"));
  expect_wallet_of(assistant);
  QVERIFY(content_of(fixture_->data() + "/settings.toml").contains("memory_limit"));
  QVERIFY(!QFileInfo::exists(fixture_->data() + "-invited"));
}

void TestAppLinks::a_first_start_that_declines_trains_alone() {
  fixture_ = std::make_unique<AppFixture>();
  const QString link = invitation();
  fixture_->start();
  Assistant assistant(fixture_->app().window(), patience_);
  QVERIFY(assistant.shows<QPushButton>("setupNext"));
  QVERIFY(assistant.next());  // look
  QVERIFY(assistant.shows<QLineEdit>("setupFolder") && assistant.next());
  QVERIFY(assistant.make_wallet());
  QVERIFY(assistant.next());  // limits
  QVERIFY(assistant.shows<QRadioButton>("setupJoin"));
  assistant.get<QRadioButton>("setupJoin")->setChecked(true);
  assistant.get<QLineEdit>("setupInvitation")->setText(link);
  QVERIFY(!answer_question(
               patience_, [&] { assistant.next(); }, "linkQuestion", "")
               .isEmpty());
  QVERIFY(runs_in(fixture_->data()));
  QCOMPARE(fixture_->snapshot()->program.network, std::string("solo"));
  expect_wallet_of(assistant);
}

void TestAppLinks::it_says_that_members_hold_parts() {
  const QString link = invitation({"--h", "20", "--layers", "2", "--sync", "parts=2"});
  QVERIFY2(link.startsWith("neuroshard:join"), qPrintable(link));
  QVERIFY(start_running());
  const QString asked = hand_over(link, "");
  QVERIFY2(
      asked.contains("Each member holds one of 2 parts of the model. The network chooses this computer's."),
      qPrintable(asked));
}

void TestAppLinks::a_link_that_can_not_be_followed_changes_nothing() {
  QVERIFY(start_running());
  QVERIFY(hand_over("neuroshard:dance?with=me", "").contains("Nothing was changed"));
  QVERIFY(hand_over("neuroshard:invite?peer=host.example:9000", "").contains("host.example:9000"));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
  QCOMPARE(fixture_->banners(), QString());
}

void TestAppLinks::a_damaged_invitation_is_refused_in_words() {
  QVERIFY(start_running());
  gui::Arguments arguments;
  arguments.link = invitation();
  arguments.link.chop(1);
  fixture_->app().called(arguments);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("copy the whole link again"));
  QVERIFY2(!fixture_->banners().contains('{'), qPrintable(fixture_->banners()));
}

NS_UI_TEST(TestAppLinks)
#include "test_app_links.moc"
