// The leader of a view asks for a block when enough members are there, and each question once.
#include <QtTest>

#include "core/chain/detail/leader_task.h"
#include "tests/support/test_main.h"

using neuroshard::chain::LeaderTask;
using Step = LeaderTask::Step;

namespace {

constexpr LeaderTask::Support nobody{}, stall_quorum{true, false, false}, quorum{true, true, false},
    everybody{true, true, true};

// A leader that may ask.
LeaderTask ready_leader() {
  LeaderTask task;
  task.next(quorum, false, false);
  task.waited();
  return task;
}

}  // namespace

class TestLeaderTask : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void waits_for_a_quorum_and_then_for_the_others();
  void does_not_wait_for_others_when_all_are_there();
  void proposes_a_lock_without_a_question();
  void asks_for_presence_changes_first();
  void a_stall_quorum_is_for_presence_changes_only();
  void each_question_is_put_once();
  void a_view_without_a_block_is_hopeless();
  void a_new_view_begins_anew();
};

void TestLeaderTask::waits_for_a_quorum_and_then_for_the_others() {
  LeaderTask task;
  QCOMPARE(task.next(nobody, true, false), Step::Nothing);
  QCOMPARE(task.next(quorum, true, false), Step::WaitForOthers);
  QCOMPARE(task.next(quorum, true, false), Step::Nothing);  // one may have a newer lock
  task.waited();
  QCOMPARE(task.next(quorum, true, false), Step::ProposeLock);
}

void TestLeaderTask::does_not_wait_for_others_when_all_are_there() {
  LeaderTask at_once;
  QCOMPARE(at_once.next(everybody, false, false), Step::AskAny);
  LeaderTask later;
  QCOMPARE(later.next(quorum, false, false), Step::WaitForOthers);
  QCOMPARE(later.next(everybody, false, false), Step::AskAny);
}

void TestLeaderTask::proposes_a_lock_without_a_question() {
  LeaderTask task = ready_leader();
  QCOMPARE(task.next(quorum, true, true), Step::ProposeLock);
  QVERIFY(!task.has_asked());
  task.proposed();
  QVERIFY(task.has_proposed());
  QCOMPARE(task.next(everybody, true, false), Step::Nothing);
}

void TestLeaderTask::asks_for_presence_changes_first() {
  LeaderTask task = ready_leader();
  QCOMPARE(task.next(quorum, false, true), Step::AskPresence);
  QVERIFY(task.has_asked_presence());
  task.found_nothing();
  QVERIFY(task.has_nothing());
  QCOMPARE(task.next(quorum, false, true), Step::AskAny);
  QVERIFY(task.has_asked() && !task.has_asked_presence() && !task.has_nothing());
}

void TestLeaderTask::a_stall_quorum_is_for_presence_changes_only() {
  LeaderTask task;
  QCOMPARE(task.next(stall_quorum, false, true), Step::WaitForOthers);
  task.waited();
  QCOMPARE(task.next(stall_quorum, false, false), Step::Nothing);
  QCOMPARE(task.next(stall_quorum, false, true), Step::AskPresence);
  task.found_nothing();
  QCOMPARE(task.next(stall_quorum, false, true), Step::Nothing);
  QVERIFY(task.has_nothing());
  QCOMPARE(task.next(quorum, false, true), Step::AskAny);  // more have come
}

void TestLeaderTask::each_question_is_put_once() {
  LeaderTask task = ready_leader();
  QCOMPARE(task.next(quorum, false, false), Step::AskAny);
  QCOMPARE(task.next(everybody, false, false), Step::Nothing);
  QCOMPARE(task.next(everybody, false, true), Step::Nothing);
  QCOMPARE(task.next(everybody, true, false), Step::ProposeLock);  // which came meanwhile
}

void TestLeaderTask::a_view_without_a_block_is_hopeless() {
  LeaderTask task = ready_leader();
  task.next(quorum, false, false);
  QVERIFY(!task.has_nothing());
  task.found_nothing();
  QVERIFY(task.has_nothing() && !task.has_asked());
  QCOMPARE(task.next(everybody, false, false), Step::Nothing);
  LeaderTask restarted = ready_leader();
  restarted.cannot_propose();
  QVERIFY(restarted.has_nothing());
}

void TestLeaderTask::a_new_view_begins_anew() {
  LeaderTask task = ready_leader();
  task.next(quorum, false, false);
  task.found_nothing();
  task.begin();
  QVERIFY(!task.has_nothing());
  QCOMPARE(task.next(quorum, false, false), Step::WaitForOthers);
  task.begin();
  task.waited();  // of the view before
  QCOMPARE(task.next(quorum, false, false), Step::WaitForOthers);
}

NS_TEST(TestLeaderTask)
#include "test_leader_task.moc"
