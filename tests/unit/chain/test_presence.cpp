// Silent voters, agreement to a mark, and stalled heights, by given times.
#include <QtTest>

#include "core/chain/presence.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Numbers = std::vector<std::uint32_t>;

MonotonicTime at(Duration since_start) {
  return MonotonicTime(std::chrono::hours(1) + since_start);
}

Committee committee_of(const Numbers& numbers) {
  std::vector<CommitteeMember> members;
  for (const std::uint32_t number : numbers) {
    CommitteeMember member;
    member.number = number;
    member.units = units_per_wallet;
    member.key.fill(static_cast<std::uint8_t>(number));
    member.id.fill(static_cast<std::uint8_t>(number));
    members.push_back(member);
  }
  return Committee(std::move(members), VotersMode::Open, {}, 1);
}

ChainRules rules_with(Duration block_time) {
  ChainRules rules;
  rules.block_time = block_time;
  return rules;
}

}  // namespace

class TestPresence : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_voter_is_silent_after_three_minutes();
  void a_voter_is_silent_after_three_block_times();
  void a_sign_of_life_ends_the_silence();
  void a_node_is_never_silent_to_itself();
  void never_all_are_silent();
  void a_node_agrees_with_marks_of_silent_voters_only();
  void a_new_block_keeps_the_times();
  void a_height_is_stalled_ten_minutes_after_a_block_was_due();
  void a_long_deadline_postpones_the_stall();
};

void TestPresence::a_voter_is_silent_after_three_minutes() {
  PresenceWatch watch(rules_with(seconds(5)));
  watch.on_block(committee_of({1, 2, 3}), 1, at({}));
  watch.heard(3, at(seconds(60)));
  QCOMPARE(watch.silent(at(minutes(3) - milliseconds(1))), Numbers{});
  QCOMPARE(watch.silent(at(minutes(3))), Numbers{2});
  QCOMPARE(watch.silent(at(minutes(4))), (Numbers{2, 3}));
}

void TestPresence::a_voter_is_silent_after_three_block_times() {
  PresenceWatch watch(rules_with(minutes(2)));
  watch.on_block(committee_of({1, 2}), 1, at({}));
  QCOMPARE(watch.silent(at(minutes(6) - milliseconds(1))), Numbers{});
  QCOMPARE(watch.silent(at(minutes(6))), Numbers{2});
}

void TestPresence::a_sign_of_life_ends_the_silence() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2}), 1, at({}));
  QCOMPARE(watch.silent(at(minutes(5))), Numbers{2});
  watch.heard(2, at(minutes(5)));
  QCOMPARE(watch.silent(at(minutes(5))), Numbers{});
  QCOMPARE(watch.silent(at(minutes(8))), Numbers{2});
  watch.heard(7, at(minutes(8)));  // not in the committee: nothing to watch
  QCOMPARE(watch.silent(at(minutes(20))), Numbers{2});
}

void TestPresence::a_node_is_never_silent_to_itself() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2}), 2, at({}));
  QCOMPARE(watch.silent(at(minutes(30))), Numbers{1});
  QVERIFY(!watch.agrees_with({2}, at(minutes(30))));
}

// A node that is no voter watches all of them; one always stays.
void TestPresence::never_all_are_silent() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2, 3}), std::nullopt, at({}));
  watch.heard(2, at(seconds(1)));
  QCOMPARE(watch.silent(at(minutes(30))), (Numbers{1, 3}));
  QVERIFY(!watch.agrees_with({1, 2, 3}, at(minutes(30))));
  QVERIFY(watch.agrees_with({1, 2}, at(minutes(30))));
  PresenceWatch alone(rules_with(seconds(60)));
  alone.on_block(committee_of({1}), std::nullopt, at({}));
  QCOMPARE(alone.silent(at(minutes(30))), Numbers{});
  QVERIFY(!alone.agrees_with({1}, at(minutes(30))));
}

void TestPresence::a_node_agrees_with_marks_of_silent_voters_only() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2, 3, 4}), 1, at({}));
  watch.heard(3, at(minutes(2)));
  const MonotonicTime now = at(minutes(4));
  QVERIFY(watch.agrees_with({}, now));
  QVERIFY(watch.agrees_with({2}, now));
  QVERIFY(watch.agrees_with({2, 4}, now));
  QVERIFY(!watch.agrees_with({2, 3}, now));
  QVERIFY(!watch.agrees_with({2, 9}, now));
}

// Blocks that the others make do not give a silent voter more time.
void TestPresence::a_new_block_keeps_the_times() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2, 3}), 1, at({}));
  watch.heard(3, at(minutes(2)));
  watch.on_block(committee_of({1, 2, 3, 4}), 1, at(minutes(2)));
  QCOMPARE(watch.silent(at(minutes(3))), Numbers{2});
  QCOMPARE(watch.silent(at(minutes(5))), (Numbers{2, 3, 4}));
  // A voter that leaves the committee is not watched; when it returns, its time begins anew.
  watch.on_block(committee_of({1, 3, 4}), 1, at(minutes(5)));
  QCOMPARE(watch.silent(at(minutes(5))), (Numbers{3, 4}));
  watch.on_block(committee_of({1, 2, 3, 4}), 1, at(minutes(6)));
  QVERIFY(!watch.agrees_with({2}, at(minutes(8))));
  QVERIFY(watch.agrees_with({2}, at(minutes(9))));
}

void TestPresence::a_height_is_stalled_ten_minutes_after_a_block_was_due() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2}), 1, at({}));
  QVERIFY(!watch.is_stalled(at(std::chrono::hours(5)), seconds(30)));
  watch.block_is_due(at(minutes(1)));
  watch.block_is_due(at(minutes(9)));  // it is due already
  QVERIFY(!watch.is_stalled(at(minutes(11) - milliseconds(1)), seconds(30)));
  QVERIFY(watch.is_stalled(at(minutes(11)), seconds(30)));
  watch.on_block(committee_of({1, 2}), 1, at(minutes(12)));
  QVERIFY(!watch.is_stalled(at(std::chrono::hours(5)), seconds(30)));
}

void TestPresence::a_long_deadline_postpones_the_stall() {
  PresenceWatch watch(rules_with(seconds(60)));
  watch.on_block(committee_of({1, 2}), 1, at({}));
  watch.block_is_due(at({}));
  QVERIFY(!watch.is_stalled(at(minutes(40) - milliseconds(1)), minutes(20)));
  QVERIFY(watch.is_stalled(at(minutes(40)), minutes(20)));
}

NS_TEST(TestPresence)
#include "test_presence.moc"
