// A node's statement of its line's speed: the bytes that it carried while there was something to carry, and
// nothing before that.
#include <QtTest>

#include "core/net/line_speed.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr std::uint64_t piece = 256u << 10, mebi = 1u << 20;
using neuroshard::test::hour;
using neuroshard::test::second;

// A line, and what wants to travel on it.
struct Line {
  explicit Line(std::uint64_t up_limit = 0) : speed(clock, up_limit, 0) {}
  // Somebody waits for `bytes`, which come in pieces at this rate.
  void transfer(std::uint64_t bytes, double rate, LineWay way = LineWay::Up) {
    const LineDemand demand(&speed, way);
    for (std::uint64_t sent = 0; sent < bytes; sent += piece) {
      clock.advance(
          std::chrono::duration_cast<Duration>(std::chrono::duration<double>(double(piece) / rate)));
      speed.carried(way, piece);
    }
  }
  std::uint64_t up() const { return speed.speed(LineWay::Up); }

  ManualClock clock;
  LineSpeed speed;
};

bool is_about(std::uint64_t found, double wanted, double share = 0.01) {
  if (std::abs(static_cast<double>(found) - wanted) <= share * wanted) return true;
  qWarning("%g instead of %g", static_cast<double>(found), wanted);
  return false;
}

}  // namespace

class TestLineSpeed : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_steady_line_is_measured_data();
  void a_steady_line_is_measured();
  void little_says_nothing();
  void pieces_with_pauses_between_say_nothing();
  void pauses_for_the_way_there_and_back_are_part_of_it();
  void what_buffers_take_does_not_count();
  void one_accident_is_not_believed();
  void slow_transfers_do_not_hide_the_fast_one();
  void old_measurements_are_forgotten();
  void never_more_than_the_user_allows();
  void what_the_user_allows_is_known_before_anything_is_measured();
  void both_directions_are_apart();
  void what_is_relayed_travels_beside();
};

void TestLineSpeed::a_steady_line_is_measured_data() {
  QTest::addColumn<double>("rate");
  QTest::newRow("1 Mbit/s") << 125e3;
  QTest::newRow("8 Mbit/s") << 1e6;
  QTest::newRow("100 Mbit/s") << 12.5e6;
  QTest::newRow("10 Gbit/s") << 1.25e9;
}

void TestLineSpeed::a_steady_line_is_measured() {
  QFETCH(double, rate);
  Line line;
  line.transfer(static_cast<std::uint64_t>(std::max(14.0 * mebi, 6 * rate)), rate);
  QVERIFY(is_about(line.up(), rate));
}

void TestLineSpeed::little_says_nothing() {
  Line line;
  line.transfer(8 * mebi, 1e6);  // one measurement only
  QCOMPARE(line.up(), std::uint64_t{0});
  for (int i = 0; i < 100; ++i) {  // a quarter of a second each, and never for long
    line.transfer(mebi, 4e6);
    line.clock.advance(second);
  }
  QCOMPARE(line.up(), std::uint64_t{0});
}

// A small network's rounds: each second some bytes at full speed. Their mean a second is no line's
// speed.
void TestLineSpeed::pieces_with_pauses_between_say_nothing() {
  Line line;
  for (int i = 0; i < 1000; ++i) {
    line.transfer(piece, 100e6);
    line.clock.advance(second);
  }
  QCOMPARE(line.up(), std::uint64_t{0});
}

void TestLineSpeed::pauses_for_the_way_there_and_back_are_part_of_it() {
  Line line;
  for (int i = 0; i < 200; ++i) {
    line.transfer(piece, 10e6);
    line.clock.advance(std::chrono::milliseconds(50));
  }
  QVERIFY(is_about(line.up(), double(piece) / (double(piece) / 10e6 + 0.05)));
}

void TestLineSpeed::what_buffers_take_does_not_count() {
  Line line;
  const LineDemand demand(&line.speed, LineWay::Up);
  line.transfer(4 * mebi, 1e9);
  line.transfer(20 * mebi, 1e6);
  QVERIFY(is_about(line.up(), 1e6));
}

void TestLineSpeed::one_accident_is_not_believed() {
  Line line;
  const LineDemand demand(&line.speed, LineWay::Up);
  line.transfer(20 * mebi, 1e6);
  line.transfer(40 * mebi, 16e6);  // buffers, suddenly emptied
  line.transfer(20 * mebi, 1e6);
  QVERIFY(line.up() < 12'000'000);
  Line other;
  other.transfer(20 * mebi, 1e6);
  other.transfer(9 * mebi, 3e6);  // long enough for one
  QVERIFY(is_about(other.up(), 1e6));
}

void TestLineSpeed::slow_transfers_do_not_hide_the_fast_one() {
  Line line;
  line.transfer(100 * mebi, 10e6);
  line.clock.advance(hour);
  for (int i = 0; i < 10; ++i) line.transfer(20 * mebi, 300e3);  // of somebody whose own line is slow
  QVERIFY(is_about(line.up(), 10e6));
}

void TestLineSpeed::old_measurements_are_forgotten() {
  Line line;
  line.transfer(100 * mebi, 10e6);
  for (int i = 0; i < 7; ++i) {  // the line is another one now
    line.clock.advance(hour);
    line.transfer(20 * mebi, 1e6);
  }
  QVERIFY(is_about(line.up(), 1e6));
  line.clock.advance(12 * hour);
  QVERIFY(is_about(line.up(), 1e6));  // nothing newer is known
  line.clock.advance(24 * hour);
  QCOMPARE(line.up(), std::uint64_t{0});
}

void TestLineSpeed::never_more_than_the_user_allows() {
  Line line(900'000);
  line.transfer(20 * mebi, 1e6);
  QCOMPARE(line.up(), std::uint64_t{900'000});
  Line generous(2'000'000);
  generous.transfer(20 * mebi, 1e6);
  QVERIFY(is_about(generous.up(), 1e6));
}

void TestLineSpeed::what_the_user_allows_is_known_before_anything_is_measured() {
  Line line(1'000'000);
  QCOMPARE(line.up(), std::uint64_t{0});  // nothing to tell others
  QCOMPARE(line.speed.at_most(LineWay::Up), std::uint64_t{1'000'000});
  QCOMPARE(line.speed.at_most(LineWay::Down), std::uint64_t{0});
  line.transfer(14 * mebi, 125e3);
  QVERIFY(is_about(line.speed.at_most(LineWay::Up), 125e3));
}

void TestLineSpeed::both_directions_are_apart() {
  Line line;
  line.transfer(20 * mebi, 1e6, LineWay::Down);
  QCOMPARE(line.up(), std::uint64_t{0});
  QVERIFY(is_about(line.speed.speed(LineWay::Down), 1e6));
}

void TestLineSpeed::what_is_relayed_travels_beside() {
  Line line;
  for (int i = 0; i < 100; ++i) {  // alone it says nothing: the line may have waited for others
    line.clock.advance(second);
    line.speed.carried(LineWay::Up, mebi);
  }
  QCOMPARE(line.up(), std::uint64_t{0});
  const LineDemand demand(&line.speed, LineWay::Up);
  for (int i = 0; i < 30; ++i) {
    line.transfer(mebi, 1e6);
    line.speed.carried(LineWay::Up, mebi);
  }
  QVERIFY(is_about(line.up(), 2e6, 0.1));
}

NS_TEST(TestLineSpeed)
#include "test_line_speed.moc"
