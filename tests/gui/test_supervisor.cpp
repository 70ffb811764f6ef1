// The supervisor of the core: attaches, starts, restarts later each time, and turns to safe mode.
#include "tests/gui/support/supervisor_fixture.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::gui;  // NOLINT

class TestSupervisor : public QObject, protected SupervisorFixture {
  Q_OBJECT
 private Q_SLOTS:
  void init() { make(); }
  void attaches_to_a_core_that_runs();
  void starts_one_where_none_runs();
  void restarts_after_a_crash_later_each_time();
  void three_crashes_lead_to_safe_mode_and_back();
  void crashes_long_ago_do_not_count();
  void crashes_long_ago_are_told_no_more();
  void a_dismissed_crash_is_told_no_more();
  void crashes_here_are_not_told_of_another_computer();
  void a_crash_in_safe_mode_is_told_and_not_repeated();
  void a_core_that_cannot_start_says_why();
  void a_held_directory_is_tried_again();
  void another_version_is_told_what_to_do();
  void a_core_that_is_silent_is_not_started_twice();
  void a_core_that_was_silent_before_it_ended_is_told();
  void a_core_that_never_answers_is_told();
  void a_restart_waits_for_a_slow_end();
  void a_restart_waits_for_a_core_that_only_the_link_sees();

 private:
  void crash_and_come_back() {
    crash();
    wait(seconds(60));
    link_->come(*launcher_->pid());
  }
  std::optional<ui::BannerContent> shown_banner() {
    return CoreWords::banner(supervisor_->status(),
                             {{}, {}, {}, {}, [this] { supervisor_->dismiss_crashes(); }});
  }
  void wait_too_long_for_a_stop() {
    wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  }
};

void TestSupervisor::attaches_to_a_core_that_runs() {
  QSignalSpy attached(supervisor_.get(), &CoreSupervisor::attached);
  open();
  QCOMPARE(link_->opened, QStringList{"/data"});
  link_->come(7);
  QCOMPARE(phase(), CorePhase::Running);
  QCOMPARE(attached.count(), 1);
  QVERIFY(!supervisor_->status().ours);
  QVERIFY(launcher_->requests.empty());
}

void TestSupervisor::starts_one_where_none_runs() {
  QSignalSpy started(supervisor_.get(), &CoreSupervisor::started);
  start_ours();
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  QCOMPARE(launcher_->requests[0].data_directory, QString("/data"));
  QVERIFY(!launcher_->requests[0].safe);
  QVERIFY(supervisor_->status().ours);
  QCOMPARE(started.count(), 1);
}

void TestSupervisor::restarts_after_a_crash_later_each_time() {
  start_ours();
  crash();
  QCOMPARE(phase(), CorePhase::Waiting);
  QVERIFY(supervisor_->status().crashed);
  const auto banner = CoreWords::banner(supervisor_->status(), {});
  QVERIFY(banner && banner->title.contains("crashed"));
  QCOMPARE(banner->details, QString("boom"));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  wait(seconds(1));
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
  link_->come(*launcher_->pid());
  QCOMPARE(phase(), CorePhase::Running);
  QVERIFY(CoreWords::banner(supervisor_->status(), {}).has_value());  // it is still told
  crash();
  wait(seconds(1));
  QCOMPARE(launcher_->requests.size(), std::size_t{2});  // twice as long now
  wait(seconds(1));
  QCOMPARE(launcher_->requests.size(), std::size_t{3});
}

void TestSupervisor::three_crashes_lead_to_safe_mode_and_back() {
  start_ours();
  for (int i = 0; i < 3; ++i) {
    QVERIFY(!launcher_->requests.back().safe);
    crash();
    wait(seconds(60));
    link_->come(*launcher_->pid());
  }
  QVERIFY(launcher_->requests.back().safe);
  QVERIFY(supervisor_->status().safe_mode);
  const auto banner = CoreWords::banner(supervisor_->status(), {});
  QVERIFY(banner && banner->title.contains("Safe mode"));
  QCOMPARE(banner->actions.size(), std::size_t{1});

  supervisor_->restart(false);
  QCOMPARE(phase(), CorePhase::Stopping);
  QCOMPARE(link_->node->commands(), std::vector<std::string>{"shutdown"});
  launcher_->end(false, 0);
  link_->go(CoreAbsence::Kind::None);
  QVERIFY(!launcher_->requests.back().safe);
  link_->come(*launcher_->pid());
  QCOMPARE(phase(), CorePhase::Running);
  QVERIFY(!CoreWords::banner(supervisor_->status(), {}).has_value());
}

void TestSupervisor::crashes_long_ago_do_not_count() {
  start_ours();
  for (int i = 0; i < 5; ++i) {
    clock_.advance(std::chrono::minutes(6));
    crash();
    wait(seconds(60));
    QVERIFY2(!launcher_->requests.back().safe, "two within ten minutes are not three");
    link_->come(*launcher_->pid());
  }
}

void TestSupervisor::crashes_long_ago_are_told_no_more() {
  start_ours();
  crash_and_come_back();
  QVERIFY(shown_banner().has_value());
  QSignalSpy changed(supervisor_.get(), &CoreSupervisor::status_changed);
  wait(std::chrono::minutes(11));
  QCOMPARE(supervisor_->status().crashes, std::size_t{0});
  QCOMPARE(changed.count(), 1);  // the window looks again
  QVERIFY(!shown_banner().has_value());
  link_->go(CoreAbsence::Kind::Silent);
  link_->come(*launcher_->pid());
  QVERIFY(!shown_banner().has_value());

  // Nor one that got old while the core was silent.
  crash_and_come_back();
  link_->go(CoreAbsence::Kind::Silent);
  wait(std::chrono::minutes(11));
  link_->come(*launcher_->pid());
  QVERIFY(!shown_banner().has_value());

  // Safe mode stays, and says why.
  for (int i = 0; i < 3; ++i) crash_and_come_back();
  wait(std::chrono::minutes(11));
  QVERIFY(supervisor_->status().safe_mode);
  QCOMPARE(supervisor_->status().crashes, std::size_t{3});
}

void TestSupervisor::a_dismissed_crash_is_told_no_more() {
  start_ours();
  crash_and_come_back();
  const auto told = shown_banner();
  QVERIFY(told && told->can_close && told->on_close);
  told->on_close();
  QVERIFY(!shown_banner().has_value());
  link_->go(CoreAbsence::Kind::Silent);
  link_->come(*launcher_->pid());
  QVERIFY(!shown_banner().has_value());
  QCOMPARE(supervisor_->status().crashes, std::size_t{1});  // it counts on
  crash_and_come_back();
  QVERIFY(shown_banner().has_value());
}

void TestSupervisor::crashes_here_are_not_told_of_another_computer() {
  start_ours();
  crash_and_come_back();
  supervisor_->open_remote("/tmp/control.json");
  link_->come(7);
  QCOMPARE(phase(), CorePhase::Running);
  QVERIFY(!shown_banner().has_value());
}

void TestSupervisor::a_crash_in_safe_mode_is_told_and_not_repeated() {
  start_ours();
  for (int i = 0; i < 3; ++i) {
    crash();
    wait(seconds(60));
    link_->come(*launcher_->pid());
  }
  crash();
  QCOMPARE(phase(), CorePhase::Failed);
  const std::size_t before = launcher_->requests.size();
  wait(seconds(600));
  QCOMPARE(launcher_->requests.size(), before);
  supervisor_->start();
  QCOMPARE(launcher_->requests.size(), before + 1);
  QVERIFY(!launcher_->requests.back().safe);
}

void TestSupervisor::a_core_that_cannot_start_says_why() {
  open();
  link_->go(CoreAbsence::Kind::None);
  launcher_->end(false, 65, "neuroshardd: error: FORMAT is of a newer version");
  QCOMPARE(phase(), CorePhase::Failed);
  const auto banner = CoreWords::banner(supervisor_->status(), {});
  QVERIFY(banner && banner->text.contains("newer version"));
  wait(seconds(600));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  launcher_->fail = true;
  supervisor_->start();
  QCOMPARE(phase(), CorePhase::Failed);
  QVERIFY(supervisor_->status().error.message.find("no neuroshardd") != std::string::npos);
}

void TestSupervisor::a_held_directory_is_tried_again() {
  open();
  link_->go(CoreAbsence::Kind::None);
  launcher_->end(false, 75, "process 12 has it");
  QCOMPARE(phase(), CorePhase::Waiting);
  QVERIFY(!supervisor_->status().crashed);
  wait(seconds(2));
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
}

void TestSupervisor::another_version_is_told_what_to_do() {
  open();
  link_->refuse(ErrorCode::Unsupported, 7);
  QCOMPARE(phase(), CorePhase::WrongVersion);
  auto banner = CoreWords::banner(supervisor_->status(), {});
  QVERIFY(banner && banner->actions.empty());
  QVERIFY(banner->text.contains("newer one"));

  // One that this app started before an upgrade can be restarted from here.
  supervisor_->remember({7, 1});
  link_->refuse(ErrorCode::Unsupported, 7);
  banner = CoreWords::banner(supervisor_->status(), {});
  QVERIFY(banner && banner->actions.size() == 1);
  supervisor_->restart(false);
  QCOMPARE(link_->asked, std::vector<std::int64_t>{7});
  link_->refuse(ErrorCode::Unsupported, 7);  // still there
  QCOMPARE(phase(), CorePhase::Stopping);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
}

void TestSupervisor::a_core_that_is_silent_is_not_started_twice() {
  start_ours();
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(phase(), CorePhase::Looking);
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  link_->come(*launcher_->pid());
  QCOMPARE(phase(), CorePhase::Running);
}

// A process that is killed lets go of its connections first: silent, and only then gone.
void TestSupervisor::a_core_that_was_silent_before_it_ended_is_told() {
  supervisor_->remember({7, 1});
  open();
  link_->come(7);
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(phase(), CorePhase::Looking);
  link_->go(CoreAbsence::Kind::Killed);
  QCOMPARE(phase(), CorePhase::Waiting);
  QCOMPARE(supervisor_->status().crashes, std::size_t{1});
  QVERIFY(launcher_->requests.empty());
  wait(seconds(1));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});

  make();
  open();
  link_->come(8);  // somebody else's
  link_->go(CoreAbsence::Kind::Silent);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Stopped);
  QVERIFY(!supervisor_->status().crashed);
  QVERIFY(launcher_->requests.empty());
}

void TestSupervisor::a_core_that_never_answers_is_told() {
  open();
  link_->go(CoreAbsence::Kind::None);
  wait(seconds(59));
  QCOMPARE(phase(), CorePhase::Starting);
  wait(seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  QVERIFY(!supervisor_->status().error.message.empty());
  link_->come(*launcher_->pid());  // late, and welcome
  QCOMPARE(phase(), CorePhase::Running);
  QVERIFY(supervisor_->status().ours);
}

void TestSupervisor::a_restart_waits_for_a_slow_end() {
  start_ours();
  supervisor_->restart(false);
  wait_too_long_for_a_stop();
  QCOMPARE(phase(), CorePhase::Failed);
  // "Try again" waits once more.
  supervisor_->start();
  QCOMPARE(phase(), CorePhase::Stopping);
  wait_too_long_for_a_stop();
  QCOMPARE(phase(), CorePhase::Failed);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  launcher_->end(false, 0);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Starting);
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
  QCOMPARE(launcher_->requests.back().data_directory, QString("/data"));
  QVERIFY(!launcher_->requests.back().safe);
}

void TestSupervisor::a_restart_waits_for_a_core_that_only_the_link_sees() {
  supervisor_->remember({7, 1});
  open();
  link_->come(7);
  supervisor_->restart(true);
  wait_too_long_for_a_stop();
  QCOMPARE(phase(), CorePhase::Failed);
  link_->go(CoreAbsence::Kind::Silent);
  QCOMPARE(phase(), CorePhase::Failed);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Looking);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Starting);
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  QVERIFY(launcher_->requests.back().safe);
}

NS_TEST(TestSupervisor)
#include "test_supervisor.moc"
