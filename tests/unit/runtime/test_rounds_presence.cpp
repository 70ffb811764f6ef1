// When the others go on without this node's part of a round: while its owner leaves, and while there is no room for a round. The
// node and its executor are real; the test plays the other founders of its chain.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/runtime/presence_bench.h"

using namespace neuroshard;
using namespace neuroshard::runtime;
using test::PresenceBench;
using testing::until;

namespace {

constexpr Duration a_minute = std::chrono::minutes(1), an_hour = std::chrono::hours(1);
constexpr Duration voters_answer_limit = std::chrono::seconds(2);
constexpr int some_looks_ms = PresenceBench::some_looks_ms;

}  // namespace

class TestRoundsPresence : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // ---- The owner leaves

  void nobody_waits_where_there_is_no_chain_yet() {
    PresenceBench bench(1);
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    QCOMPARE(done.load(), 1);
    QVERIFY(bench.is_leaving());
    bench.presence->announce_back();
    QVERIFY(!bench.is_leaving());
  }

  void a_lone_voter_goes_at_once() {
    PresenceBench bench(1);
    bench.start();
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    QCOMPARE(done.load(), 1);
    QVERIFY(bench.is_leaving());
  }

  void it_goes_once_the_others_go_on_without_it_and_comes_back() {
    PresenceBench bench;
    bench.start_in_company();
    QVERIFY(bench.stays(false));
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    QVERIFY(until([&] { return done == 1; }));
    QVERIFY(bench.is_away());
    QVERIFY(bench.stays(true));
    bench.presence->announce_back();
    QVERIFY(bench.returns());
    QVERIFY(bench.stays(false));
    QCOMPARE(done.load(), 1);
  }

  void a_node_that_the_others_go_on_without_goes_at_once() {
    PresenceBench bench(3);
    bench.make_dormant();
    bench.start();
    QVERIFY(bench.is_away());
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    QCOMPARE(done.load(), 1);
  }

  void it_waits_two_seconds_for_voters_that_are_silent() {
    PresenceBench bench(2);
    bench.start();
    bench.clock.advance(an_hour);
    QVERIFY(until([&] { return bench.missing() == 1; }));
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    bench.clock.advance(voters_answer_limit - std::chrono::milliseconds(1));
    QTest::qWait(some_looks_ms);
    QCOMPARE(done.load(), 0);
    bench.clock.advance(std::chrono::milliseconds(1));
    QVERIFY(until([&] { return done == 1; }));
    QTest::qWait(some_looks_ms);
    QCOMPARE(done.load(), 1);
  }

  void it_waits_for_voters_that_were_heard_until_the_deadline() {
    PresenceBench bench(2);
    bench.start();
    QCOMPARE(bench.missing(), std::size_t{0});
    std::atomic<int> done = 0;
    bench.announce_away(3 * voters_answer_limit, done);
    bench.clock.advance(3 * voters_answer_limit - std::chrono::milliseconds(1));
    QTest::qWait(some_looks_ms);
    QCOMPARE(done.load(), 0);
    bench.clock.advance(std::chrono::milliseconds(1));
    QVERIFY(until([&] { return done == 1; }));
  }

  void only_the_newest_announcement_is_answered() {
    PresenceBench bench(2);
    bench.start();
    std::atomic<int> first = 0, second = 0;
    bench.announce_away(a_minute, first);
    bench.announce_away(2 * a_minute, second);
    bench.clock.advance(a_minute);
    QTest::qWait(some_looks_ms);
    QVERIFY(first == 0 && second == 0);
    bench.clock.advance(a_minute);
    QVERIFY(until([&] { return second == 1; }));
    QTest::qWait(some_looks_ms);
    QVERIFY(first == 0 && second == 1);
  }

  void an_announcement_is_dropped_by_the_return_and_by_the_end() {
    for (const bool by_the_end : {false, true}) {
      PresenceBench bench(2);
      bench.start();
      std::atomic<int> done = 0;
      bench.announce_away(a_minute, done);
      if (by_the_end)
        bench.on_host([&] { bench.presence->close(); });
      else
        bench.presence->announce_back();
      QVERIFY(!bench.is_leaving());
      bench.clock.advance(a_minute);
      QTest::qWait(some_looks_ms);
      QCOMPARE(done.load(), 0);
    }
  }

  void a_chain_that_begins_meanwhile_begins_away() {
    PresenceBench bench;
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    bench.start_in_company();
    bench.on_host([&] { bench.presence->begin(); });
    QVERIFY(bench.leaves());
    bench.presence->announce_back();
    QVERIFY(bench.returns());
    // One that begins while nobody leaves is there.
    bench.end();
    bench.start_in_company();
    bench.on_host([&] { bench.presence->begin(); });
    QVERIFY(bench.stays(false));
  }

  // ---- No room for a round

  void without_room_it_is_away_until_there_is_room() {
    PresenceBench bench;
    bench.start_in_company();
    bench.set_no_room(false);
    QVERIFY(bench.stays(false) && !bench.has_no_room());
    bench.set_no_room(true);
    QVERIFY(bench.has_no_room() && !bench.is_leaving());
    QVERIFY(bench.leaves());
    bench.set_no_room(true);
    bench.set_no_room(false);
    QVERIFY(!bench.has_no_room());
    QVERIFY(bench.returns());
  }

  void a_return_waits_for_room() {
    for (const bool while_it_leaves : {false, true}) {
      PresenceBench bench;
      bench.start_in_company();
      std::atomic<int> done = 0;
      if (!while_it_leaves) bench.set_no_room(true);
      bench.announce_away(a_minute, done);
      if (while_it_leaves) bench.set_no_room(true);
      QVERIFY(bench.leaves());
      bench.presence->announce_back();
      QVERIFY(bench.stays(true) && !bench.is_leaving() && bench.has_no_room());
      bench.set_no_room(false);
      QVERIFY(bench.returns());
    }
  }

  void room_does_not_bring_back_a_node_whose_owner_leaves() {
    PresenceBench bench;
    bench.start_in_company();
    bench.set_no_room(true);
    std::atomic<int> done = 0;
    bench.announce_away(a_minute, done);
    QVERIFY(bench.leaves());
    bench.set_no_room(false);
    QVERIFY(bench.stays(true));
    bench.presence->announce_back();
    QVERIFY(bench.returns());
  }

  void the_room_is_forgotten_with_the_chain() {
    PresenceBench bench;
    bench.set_no_room(true);
    QVERIFY(!bench.has_no_room());  // there is no chain that it could be about
    bench.start_in_company();
    bench.set_no_room(true);
    QVERIFY(bench.leaves());
    bench.on_host([&] { bench.presence->forget_room(); });
    QVERIFY(!bench.has_no_room());
    bench.presence->announce_back();
    QVERIFY(bench.returns());
  }
};

NS_TEST(TestRoundsPresence)
#include "test_rounds_presence.moc"
