// When a node signs again after a start: at once with a whole disk, after a height and a round with an old one.
#include <QtTest>

#include "core/chain/restart_watch.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

constexpr Duration ask_for = std::chrono::seconds(6), wait_for = std::chrono::seconds(15);
constexpr std::uint64_t height = 40, round_done = 7;

MonotonicTime at(int seconds) {
  return MonotonicTime{} + std::chrono::seconds(seconds);
}

}  // namespace

class TestRestartWatch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    watch_.emplace(ask_for, wait_for);
    watch_->begin(at(0));
  }
  void without_a_start_it_signs() { QVERIFY(RestartWatch(ask_for, wait_for).may_vote()); }
  void answers_settle_a_node_that_missed_nothing();
  void answers_settle_a_node_that_missed_blocks();
  void nobody_answers();
  void too_few_answer_after_blocks();
  void no_more_blocks_and_no_answers();
  void an_old_disk_lets_height_and_round_pass();
  void an_old_disk_is_remembered_until_the_node_has_caught_up();
  void what_a_settled_node_forgot_stops_it();

 private:
  // Neither votes nor signs in the round in progress; the next one is free if it only waits.
  void expect_quiet() const {
    QVERIFY(!watch_->may_vote());
    QVERIFY(watch_->is_quiet(round_done + 1) && !watch_->may_sign(round_done + 1));
    QVERIFY(!watch_->is_quiet(round_done + 2) && watch_->may_sign(round_done + 2));
  }
  void expect_settled() const {
    QVERIFY(watch_->may_vote() && watch_->may_sign(round_done + 1) && !watch_->is_quiet(round_done + 1));
  }
  std::optional<RestartWatch> watch_;
};

void TestRestartWatch::answers_settle_a_node_that_missed_nothing() {
  QVERIFY(!watch_->may_vote() && !watch_->may_sign(round_done + 1));
  watch_->on_peer(at(1));
  QVERIFY(!watch_->may_vote());
  watch_->on_answers(height, round_done, at(1));
  expect_settled();
}

void TestRestartWatch::answers_settle_a_node_that_missed_blocks() {
  for (int block = 0; block < 30; ++block)
    watch_->on_block(height + static_cast<std::uint64_t>(block), at(2));
  watch_->on_peer(at(3));
  QVERIFY(!watch_->may_vote() && !watch_->may_sign(round_done + 1) && !watch_->is_quiet(round_done + 1));
  watch_->on_block(height + 30, at(4));  // the others go on meanwhile
  QVERIFY(!watch_->may_vote());
  watch_->on_answers(height + 30, round_done, at(4));
  expect_settled();
}

void TestRestartWatch::nobody_answers() {
  QVERIFY(!watch_->tick(height, round_done, at(5)));
  QVERIFY(watch_->tick(height, round_done, at(6)));
  expect_settled();
}

void TestRestartWatch::too_few_answer_after_blocks() {
  watch_->on_block(height, at(2));
  watch_->on_peer(at(3));
  QVERIFY(!watch_->tick(height, round_done, at(8)));
  QVERIFY(!watch_->is_quiet(round_done + 1));
  QVERIFY(!watch_->tick(height, round_done, at(9)));
  expect_quiet();
  watch_->on_block(height + 1, at(10));
  QVERIFY(watch_->may_vote() && watch_->is_quiet(round_done + 1));
}

void TestRestartWatch::no_more_blocks_and_no_answers() {
  watch_->on_block(height, at(2));
  QVERIFY(!watch_->tick(height, round_done, at(16)));
  QVERIFY(!watch_->is_quiet(round_done + 1));
  watch_->tick(height, round_done, at(17));
  expect_quiet();
  QVERIFY(watch_->tick(height, round_done, at(32)));
  QVERIFY(watch_->may_vote());
}

void TestRestartWatch::an_old_disk_lets_height_and_round_pass() {
  QVERIFY(watch_->forgot(height, round_done, at(1)));
  QVERIFY(!watch_->forgot(height, round_done, at(1)));  // told once
  watch_->on_answers(height, round_done, at(1));
  expect_quiet();
  watch_->on_answers(height, round_done, at(2));  // of those that hold nothing of it
  expect_quiet();
  watch_->on_block(height, at(3));  // not the next one
  QVERIFY(!watch_->may_vote());
  watch_->on_block(height + 1, at(4));
  QVERIFY(watch_->may_vote() && !watch_->may_sign(round_done + 1) && watch_->may_sign(round_done + 2));
}

// It hears of its other life at the old height. Blocks that it only fetches do not end the wait.
void TestRestartWatch::an_old_disk_is_remembered_until_the_node_has_caught_up() {
  QVERIFY(watch_->forgot(3, 1, at(1)));
  for (std::uint64_t fetched = 4; fetched <= height; ++fetched) watch_->on_block(fetched, at(2));
  QVERIFY(!watch_->may_vote());
  watch_->on_peer(at(3));
  QVERIFY(!watch_->may_vote() && !watch_->may_sign(round_done + 1));
  watch_->on_answers(height, round_done, at(3));
  expect_quiet();
  // And without answers.
  init();
  QVERIFY(watch_->forgot(3, 1, at(1)));
  watch_->tick(height, round_done, at(6));
  expect_quiet();
}

void TestRestartWatch::what_a_settled_node_forgot_stops_it() {
  watch_->on_answers(height, round_done, at(1));
  QVERIFY(watch_->forgot(height, round_done, at(2)));
  expect_quiet();
  watch_->on_block(height + 1, at(3));
  QVERIFY(watch_->may_vote());
}

NS_TEST(TestRestartWatch)
#include "test_restart_watch.moc"
