// The supervisor of the core: attaches, starts, restarts later each time, turns to safe mode, and stops only
// what it started. With a fake link, a fake launcher and a clock that is moved by hand.
#include <QSignalSpy>
#include <QtTest>

#include "app/gui/core_supervisor.h"
#include "app/gui/core_words.h"
#include "tests/support/fake_node.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::gui;  // NOLINT
using std::chrono::seconds;

namespace {

class FakeLink final : public CoreLink {
 public:
  void open(const QString& directory) override { opened << directory; }
  void open_file(const QString& file) override { opened << file; }
  void close() override { ++closed; }
  void ask_to_end(const platform::ProcessIdentity& process) override { asked.push_back(process.pid); }

  void come(std::int64_t pid) {
    node = std::make_shared<testing::FakeNode>();
    Q_EMIT present({node, {pid, 1}});
  }
  void go(CoreAbsence::Kind kind) { Q_EMIT absent({kind, make_error(ErrorCode::Unavailable, "gone"), {}}); }
  void refuse(ErrorCode code, std::int64_t pid) {
    Q_EMIT absent({CoreAbsence::Kind::Refused, make_error(code, "start the installed, newer one"), {pid, 1}});
  }

  QStringList opened;
  int closed = 0;
  std::vector<std::int64_t> asked;
  std::shared_ptr<testing::FakeNode> node;
};

class FakeLauncher final : public CoreLauncher {
 public:
  Expected<void> launch(const LaunchRequest& request) override {
    if (fail) return make_error(ErrorCode::NotFound, "no neuroshardd");
    requests.push_back(request);
    pid_ = next_pid++;
    return {};
  }
  std::optional<std::int64_t> pid() const override { return pid_; }
  void terminate() override { ++terminated; }

  void end(bool crashed, int code, const QString& said = {}) {
    const CoreExit exit{*pid_, crashed, code, said};
    pid_.reset();
    Q_EMIT ended(exit);
  }

  std::vector<LaunchRequest> requests;
  std::int64_t next_pid = 100;
  int terminated = 0;
  bool fail = false;

 private:
  std::optional<std::int64_t> pid_;
};

}  // namespace

class TestSupervisor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void attaches_to_a_core_that_runs();
  void starts_one_where_none_runs();
  void restarts_after_a_crash_later_each_time();
  void three_crashes_lead_to_safe_mode_and_back();
  void crashes_long_ago_do_not_count();
  void a_crash_in_safe_mode_is_told_and_not_repeated();
  void leaves_a_core_of_others_alone();
  void a_clean_stop_by_somebody_else_is_not_undone();
  void a_core_that_cannot_start_says_why();
  void a_held_directory_is_tried_again();
  void another_version_is_told_what_to_do();
  void quit_stops_what_it_started_and_waits();
  void quit_lets_go_of_others();
  void quit_gives_up_after_the_limit();
  void a_restarted_app_knows_its_own_core();
  void a_core_that_is_silent_is_not_started_twice();
  void a_core_that_was_silent_before_it_ended_is_told();
  void a_core_that_never_answers_is_told();
  void a_core_that_came_first_is_used();
  void nothing_is_started_without_its_data();
  void another_computer_is_never_started();
  void another_directory_waits_for_the_end_of_what_it_started();

 private:
  void open() { supervisor_->open({"/data", {}, false}); }
  void start_ours() {
    open();
    link_->go(CoreAbsence::Kind::None);
    link_->come(*launcher_->pid());
  }
  void crash() {
    launcher_->end(true, 0, "boom");
    link_->go(CoreAbsence::Kind::Killed);
  }
  void wait(seconds time) {
    clock_.advance(time);
    supervisor_->tick();
  }
  CorePhase phase() const { return supervisor_->status().phase; }

  ManualClock clock_;
  std::unique_ptr<FakeLink> link_;
  std::unique_ptr<FakeLauncher> launcher_;
  std::unique_ptr<CoreSupervisor> supervisor_;
};

void TestSupervisor::init() {
  link_ = std::make_unique<FakeLink>();
  launcher_ = std::make_unique<FakeLauncher>();
  supervisor_ = std::make_unique<CoreSupervisor>(*link_, *launcher_, clock_);
}

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

void TestSupervisor::leaves_a_core_of_others_alone() {
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

void TestSupervisor::a_clean_stop_by_somebody_else_is_not_undone() {
  start_ours();
  launcher_->end(false, 0);
  link_->go(CoreAbsence::Kind::None);
  QCOMPARE(phase(), CorePhase::Stopped);
  wait(seconds(600));
  QCOMPARE(launcher_->requests.size(), std::size_t{1});
  supervisor_->start();
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
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

void TestSupervisor::quit_stops_what_it_started_and_waits() {
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

void TestSupervisor::quit_lets_go_of_others() {
  QSignalSpy stopped(supervisor_.get(), &CoreSupervisor::stopped);
  open();
  link_->come(7);
  supervisor_->quit();
  QCOMPARE(stopped.count(), 1);
  QVERIFY(link_->node->commands().empty());
  QVERIFY(link_->asked.empty());
}

void TestSupervisor::quit_gives_up_after_the_limit() {
  QSignalSpy stopped(supervisor_.get(), &CoreSupervisor::stopped);
  start_ours();
  supervisor_->quit();
  wait(seconds(14));
  QCOMPARE(stopped.count(), 0);
  wait(seconds(1));
  QCOMPARE(stopped.count(), 1);
  QVERIFY(!stopped[0][0].toBool());
  // What stands still may not have read the request: a signal waits for it.
  QCOMPARE(link_->asked.size(), std::size_t{1});
}

void TestSupervisor::a_restarted_app_knows_its_own_core() {
  supervisor_->remember({7, 1});
  open();
  link_->come(7);
  QVERIFY(supervisor_->status().ours);
  link_->go(CoreAbsence::Kind::Killed);
  QCOMPARE(phase(), CorePhase::Waiting);
  wait(seconds(1));
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

  init();
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

void TestSupervisor::a_core_that_came_first_is_used() {
  open();
  link_->go(CoreAbsence::Kind::None);
  link_->come(7);  // somebody started one at the same moment
  QVERIFY(!supervisor_->status().ours);
  launcher_->end(false, 75, "process 7 has it");
  QCOMPARE(phase(), CorePhase::Running);
}

void TestSupervisor::nothing_is_started_without_its_data() {
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

void TestSupervisor::another_computer_is_never_started() {
  supervisor_->open_remote("/tmp/control.json");
  QCOMPARE(link_->opened, QStringList{"/tmp/control.json"});
  link_->go(CoreAbsence::Kind::None);
  QVERIFY(launcher_->requests.empty());
  link_->come(7);
  QVERIFY(!supervisor_->status().ours);
  supervisor_->quit();
  QVERIFY(link_->node->commands().empty());
}

void TestSupervisor::another_directory_waits_for_the_end_of_what_it_started() {
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
  // One that does not end is told, and nothing is started beside it.
  supervisor_->move_to({"/third", {}, false, {}});
  wait(std::chrono::duration_cast<seconds>(SupervisorLimits().stop_limit) + seconds(1));
  QCOMPARE(phase(), CorePhase::Failed);
  QCOMPARE(launcher_->requests.size(), std::size_t{2});
  // Where nothing of ours runs, there is nothing to wait for.
  supervisor_->close();
  launcher_->end(false, 0);
  supervisor_->move_to({"/fourth", {}, false, {}});
  QCOMPARE(phase(), CorePhase::Looking);
  QCOMPARE(link_->opened.last(), QString("/fourth"));
}

QTEST_GUILESS_MAIN(TestSupervisor)
#include "test_supervisor.moc"
