// The supervisor of the core stops only what it started, waits for its end, and starts nothing that is not
// its own business: cores of others, other computers, data that is not there.
#include "tests/gui/support/supervisor_fixture.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::gui;  // NOLINT

class TestSupervisorOwners : public QObject, protected SupervisorFixture {
  Q_OBJECT
 private Q_SLOTS:
  void init() { make(); }
  void a_clean_stop_by_somebody_else_is_not_undone();
  void leaves_a_core_of_others_alone();
  void quit_stops_what_it_started_and_waits();
  void quit_lets_go_of_others();
  void quit_gives_up_after_the_limit();
  void a_restarted_app_knows_its_own_core();
  void a_core_that_came_first_is_used();
  void nothing_is_started_without_its_data();
  void another_computer_is_never_started();
  void another_computer_stays_when_the_local_core_ends();
  void another_directory_is_opened_from_another_computer();
  void another_directory_waits_for_the_end_of_what_it_started();
  void another_directory_is_kept_while_a_core_hangs();
};

void TestSupervisorOwners::a_clean_stop_by_somebody_else_is_not_undone() {
  start_ours();
  launcher_->end(false, 0);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Stopped);
  wait(seconds(600));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  supervisor_->start();
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
}

void TestSupervisorOwners::leaves_a_core_of_others_alone() {
  open();
  link_->come(7);
  link_->go(CoreAbsence::Kind::Killed);
  QCOMPARE(phase(), CorePhase::Stopped);
  QVERIFY(supervisor_->status().crashed);
  wait(seconds(600));
  QVERIFY(launcher_->requests.empty());
  link_->come(8);  // whoever looks after it started it again
  QCOMPARE(phase(), CorePhase::Running);
}

void TestSupervisorOwners::quit_stops_what_it_started_and_waits() {
  QSignalSpy stopped(supervisor_.get(), &CoreSupervisor::stopped);
  start_ours();
  supervisor_->quit();
  QCOMPARE(link_->node->commands(), std::vector<std::string>{"shutdown"});
  QCOMPARE(stopped.count(), 0);
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(stopped.count(), 0);
  launcher_->end(false, 0);
  QCOMPARE(stopped.count(), 1);
  QVERIFY(stopped[0][0].toBool());
}

void TestSupervisorOwners::quit_lets_go_of_others() {
  QSignalSpy stopped(supervisor_.get(), &CoreSupervisor::stopped);
  open();
  link_->come(7);
  supervisor_->quit();
  QCOMPARE(stopped.count(), 1);
  QVERIFY(link_->node->commands().empty());
  QVERIFY(link_->asked.empty());
}

void TestSupervisorOwners::quit_gives_up_after_the_limit() {
  QSignalSpy stopped(supervisor_.get(), &CoreSupervisor::stopped);
  start_ours();
  supervisor_->quit();
  wait(seconds(14));
  QCOMPARE(stopped.count(), 0);
  wait(seconds(1));
  QCOMPARE(stopped.count(), 1);
  QVERIFY(!stopped[0][0].toBool());
  // A stopped process may not have read the request: a signal waits for it.
  QCOMPARE(link_->asked.size(), std::size_t{1});
}

void TestSupervisorOwners::a_restarted_app_knows_its_own_core() {
  supervisor_->remember({7, 1});
  open();
  link_->come(7);
  QVERIFY(supervisor_->status().ours);
  link_->go(CoreAbsence::Kind::Killed);
  QCOMPARE(phase(), CorePhase::Waiting);
  wait(seconds(1));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
}

void TestSupervisorOwners::a_core_that_came_first_is_used() {
  open();
  link_->go(CoreAbsence::Kind::None);
  link_->come(7);  // somebody started one at the same moment
  QVERIFY(!supervisor_->status().ours);
  launcher_->end(false, 75, "process 7 has it");
  QCOMPARE(phase(), CorePhase::Running);
}

void TestSupervisorOwners::nothing_is_started_without_its_data() {
  std::function<void(bool)> answer;
  supervisor_->set_gate([&answer](std::function<void(bool)> then) { answer = std::move(then); });
  open();
  link_->go(CoreAbsence::Kind::None);
  QVERIFY(launcher_->requests.empty());
  answer(false);
  QCOMPARE(phase(), CorePhase::Closed);
  QVERIFY(launcher_->requests.empty());
  open();
  link_->go(CoreAbsence::Kind::None);
  answer(true);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
}

void TestSupervisorOwners::another_computer_is_never_started() {
  supervisor_->open_remote("/tmp/control.json");
  QCOMPARE(link_->opened, QStringList{"/tmp/control.json"});
  link_->go(CoreAbsence::Kind::None);
  QVERIFY(launcher_->requests.empty());
  link_->come(7);
  QVERIFY(!supervisor_->status().ours);
  supervisor_->quit();
  QVERIFY(link_->node->commands().empty());
}

void TestSupervisorOwners::another_computer_stays_when_the_local_core_ends() {
  for (const bool crashed : {false, true}) {
    make();
    start_ours();
    supervisor_->open_remote("/tmp/control.json");
    launcher_->end(crashed, 0);
    QCOMPARE(phase(), CorePhase::Looking);
    QVERIFY(supervisor_->status().remote);
    wait(seconds(60));
    QCOMPARE(launcher_->requests.size(), std::size_t{1});
    link_->come(7);
    QCOMPARE(phase(), CorePhase::Running);
    // Back on this computer, its core starts as if for the first time.
    open();
    link_->go(crashed ? CoreAbsence::Kind::Killed : CoreAbsence::Kind::None);
    QCOMPARE(phase(), CorePhase::Starting);
    QCOMPARE(launcher_->requests.size(), std::size_t{2});
    QVERIFY(!supervisor_->status().crashed);
    QCOMPARE(supervisor_->status().crashes, std::size_t{0});
  }
}

void TestSupervisorOwners::another_directory_is_opened_from_another_computer() {
  start_ours();
  supervisor_->open_remote("/tmp/control.json");
  supervisor_->move_to({"/other", {}, false, {}});
  QCOMPARE(launcher_->terminated, 1);
  wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  launcher_->end(false, 0);
  QCOMPARE(link_->opened.last(), QString("/other"));
  QVERIFY(!supervisor_->status().remote);
}

void TestSupervisorOwners::another_directory_waits_for_the_end_of_what_it_started() {
  start_ours();
  supervisor_->move_to({"/other", {}, false, "neuroshard:join?to=x"});
  QCOMPARE(phase(), CorePhase::Stopping);
  QCOMPARE(link_->node->commands(), std::vector<std::string>{"shutdown"});
  QCOMPARE(link_->opened.last(), QString("/data"));
  launcher_->end(false, 0);
  QCOMPARE(link_->opened.last(), QString("/other"));
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(launcher_->requests.back().data_directory, QString("/other"));
  QCOMPARE(launcher_->requests.back().invitation, QString("neuroshard:join?to=x"));
  link_->come(*launcher_->pid());
  QCOMPARE(phase(), CorePhase::Running);
  // The app reports a core that does not end, and starts nothing beside it.
  supervisor_->move_to({"/third", {}, false, {}});
  wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
  // "Try again" waits once more.
  supervisor_->start();
  QCOMPARE(phase(), CorePhase::Stopping);
  wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  QCOMPARE(link_->opened.last(), QString("/other"));
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
  // It ends after all.
  launcher_->end(false, 0);
  QCOMPARE(phase(), CorePhase::Looking);
  QCOMPARE(link_->opened.last(), QString("/third"));
  // Where nothing of ours runs, there is nothing to wait for.
  supervisor_->close();
  supervisor_->move_to({"/fourth", {}, false, {}});
  QCOMPARE(phase(), CorePhase::Looking);
  QCOMPARE(link_->opened.last(), QString("/fourth"));
}

// A core of an earlier run of the app: only the link sees its end.
void TestSupervisorOwners::another_directory_is_kept_while_a_core_hangs() {
  supervisor_->remember({7, 1});
  open();
  link_->come(7);
  supervisor_->move_to({"/other", {}, false, "neuroshard:join?to=x"});
  wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(phase(), CorePhase::Failed);
  // It answers again, and is asked again.
  link_->come(7);
  QCOMPARE(phase(), CorePhase::Failed);
  QCOMPARE(link_->node->commands(), std::vector<std::string>{"shutdown"});
  QCOMPARE(link_->opened.last(), QString("/data"));
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(link_->opened.last(), QString("/other"));
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  QCOMPARE(launcher_->requests.back().data_directory, QString("/other"));
  QCOMPARE(launcher_->requests.back().invitation, QString("neuroshard:join?to=x"));
}

NS_TEST(TestSupervisorOwners)
#include "test_supervisor_owners.moc"
