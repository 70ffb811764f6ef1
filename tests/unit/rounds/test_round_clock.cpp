// The times of a round, as one voter sees them: closes, graces, and rows that come late.
#include <QtTest>

#include "core/rounds/round_clock.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Three voters of twelve units each; two members more are candidates.
RoundCounts counts(std::size_t voters, std::size_t candidates, bool complete = true, bool moves = false) {
  RoundCounts counts;
  counts.contributed_units = 12 * voters;
  counts.active_units = 36;
  counts.contributions = voters + candidates;
  counts.complete = complete ? counts.contributions : counts.contributions - 1;
  counts.expected = 5;
  counts.payloads_move = moves;
  return counts;
}

struct Bench {
  RoundClock clock{RoundClockRules{}};
  MonotonicTime now{};

  void pass(Duration time) { now += time; }
  // A round of this length in which all contribute.
  void round(Duration length) {
    clock.open(now, false, {});
    pass(length);
    clock.look(now, counts(3, 2));
    clock.closed(now);
  }
  bool signs(const RoundCounts& seen) {
    clock.look(now, seen);
    return clock.wants_vector(now, seen);
  }
};

}  // namespace

class TestRoundClock : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_deadline_follows_the_last_rounds() {
    Bench b;
    QCOMPARE(b.clock.deadline(), Duration(minutes(30)));
    for (const int length : {40, 400, 80}) b.round(seconds(length));
    QCOMPARE(b.clock.deadline(), Duration(seconds(100)));
    QCOMPARE(b.clock.grace(), Duration(seconds(10)));
    QCOMPARE(b.clock.row_patience(), Duration(seconds(25)));
    for (int i = 0; i < 3; ++i) b.round(seconds(4));
    QCOMPARE(b.clock.grace(), Duration(seconds(3)));
    QCOMPARE(b.clock.row_patience(), Duration(seconds(2)));
  }

  // After a restart the stall rule would otherwise wait two first deadlines: an hour.
  void a_voter_that_was_away_takes_the_times_in_blocks() {
    Bench b;
    const std::deque<Duration> by_blocks{seconds(40), seconds(400), seconds(80)};
    b.clock.open(b.now, false, by_blocks);
    QCOMPARE(b.clock.deadline(), Duration(seconds(100)));
    b.clock.open(b.now, false, {seconds(40), seconds(40)});
    QCOMPARE(b.clock.deadline(), Duration(minutes(30)));
    for (int i = 0; i < 3; ++i) b.round(seconds(4));
    b.clock.open(b.now, false, by_blocks);
    QCOMPARE(b.clock.deadline(), Duration(seconds(5)));  // its own three are there
  }

  void with_everybody_there_is_no_grace() {
    Bench b;
    b.clock.open(b.now, false, {});
    QVERIFY(!b.signs(counts(2, 2)));
    QVERIFY(b.signs(counts(3, 2)));
  }

  // A candidate that is a little slower than a single voter gets into the round.
  void the_grace_is_for_candidates_too() {
    Bench b;
    for (int i = 0; i < 3; ++i) b.round(seconds(4));
    b.clock.open(b.now, false, {});
    QVERIFY(!b.signs(counts(3, 1)));
    b.pass(seconds(2));
    QVERIFY(!b.signs(counts(3, 1)));
    QVERIFY(b.signs(counts(3, 2)));
    b.pass(seconds(1));
    QVERIFY(b.signs(counts(3, 1)));  // the other one does not come
  }

  void payloads_that_move_are_waited_for() {
    Bench b;
    for (int i = 0; i < 3; ++i) b.round(seconds(40));
    b.clock.open(b.now, false, {});
    QVERIFY(!b.signs(counts(3, 2, false)));
    b.pass(b.clock.grace());
    QVERIFY(!b.signs(counts(3, 2, false, true)));
    QVERIFY(b.signs(counts(3, 2, false)));
    b.pass(b.clock.deadline());
    QVERIFY(b.signs(counts(3, 2, false, true)));
  }

  void a_late_row_is_carried_unless_it_moves() {
    Bench b;
    for (int i = 0; i < 3; ++i) b.round(seconds(4));
    QVERIFY(!b.clock.row_is_late(b.now, false));
    b.pass(seconds(2));
    QVERIFY(b.clock.row_is_late(b.now, false));
    QVERIFY(!b.clock.row_is_late(b.now, true));
    b.pass(seconds(28));
    QVERIFY(b.clock.row_is_late(b.now, true));
  }

  // A newcomer knows no round's length: half of its first deadline would be a quarter of an hour.
  void after_a_carried_round_the_pause_is_short() {
    Bench b;
    b.clock.open(b.now, true, {});
    QVERIFY(!b.signs(counts(3, 2)));
    b.pass(seconds(30));
    QVERIFY(b.signs(counts(3, 2)));
    for (int i = 0; i < 3; ++i) b.round(seconds(4));
    b.clock.open(b.now, true, {});
    b.pass(seconds(2));
    QVERIFY(!b.signs(counts(3, 2)));
    b.pass(seconds(1));
    QVERIFY(b.signs(counts(3, 2)));
  }

  void too_few_close_at_the_deadline() {
    Bench b;
    for (int i = 0; i < 3; ++i) b.round(seconds(40));
    b.clock.open(b.now, false, {});
    b.pass(seconds(49));
    b.clock.look(b.now, counts(1, 0));
    QVERIFY(!b.clock.is_closing());
    b.pass(seconds(1));
    b.clock.look(b.now, counts(1, 0));
    QVERIFY(b.clock.is_closing());
  }

  // Of three voters two have contributed; candidates are no units.
  void slower_ones_contribute_when_half_have() {
    QVERIFY(!half_contributed(counts(0, 3)));
    QVERIFY(!half_contributed(counts(1, 4)));
    QVERIFY(half_contributed(counts(2, 0)));
    RoundCounts four = counts(2, 0);
    four.active_units = 48;
    QVERIFY(half_contributed(four));
    QVERIFY(!half_contributed({}));
  }

  void outside_the_committee_the_time_tells_the_end_data() {
    QTest::addColumn<int>("length");  // of the last rounds
    QTest::addColumn<int>("end");     // two graces before it; half of it at the earliest
    QTest::newRow("long") << 400 << 380;
    QTest::newRow("of a minute") << 60 << 45;
    QTest::newRow("short") << 8 << 4;
  }

  void outside_the_committee_the_time_tells_the_end() {
    QFETCH(int, length);
    QFETCH(int, end);
    Bench b;
    const Duration usual = seconds(length);
    b.clock.open(b.now, false, {usual, usual, 3 * usual});
    b.pass(seconds(end) - std::chrono::milliseconds(1));
    QVERIFY(!b.clock.closes_before_all_steps(b.now, 0.25));
    b.pass(std::chrono::milliseconds(1));
    QVERIFY(b.clock.closes_before_all_steps(b.now, 0.25));
    const double pace = double(end) / length;  // of a member that has all steps at the usual end
    QVERIFY(!b.clock.closes_before_all_steps(b.now, pace + 0.001));
    QVERIFY(b.clock.closes_before_all_steps(b.now, pace - 0.001));
  }

  void of_two_rounds_nobody_tells_the_end() {
    Bench b;
    b.clock.open(b.now, false, {seconds(8), seconds(8)});
    b.pass(minutes(29));
    QVERIFY(!b.clock.closes_before_all_steps(b.now, 0.25));
  }
};

NS_TEST(TestRoundClock)
#include "test_round_clock.moc"
