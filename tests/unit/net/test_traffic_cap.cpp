// The monthly data limit: what it counts outlives a restart, a kill and a change of the month.
#include <QtTest>

#include "core/net/traffic_cap.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr std::uint64_t mebi = 1u << 20;
const std::string path = "/d/traffic";

WallTime day(int year, unsigned month, unsigned of_month, int hour = 0) {
  using namespace std::chrono;
  return WallTime(sys_days(std::chrono::year(year) / month / of_month).time_since_epoch() + hours(hour));
}

TrafficCap open(testing::MemoryFileEnv& files, std::uint64_t limit, WallTime now) {
  auto cap = TrafficCap::open(files, path, limit, now);
  if (!cap.ok()) qFatal("%s", cap.error().describe().c_str());
  return std::move(*cap);
}

}  // namespace

class TestTrafficCap : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void a_clean_stop_keeps_the_exact_count();
  void a_kill_never_forgets_a_byte();
  void a_new_month_starts_at_zero();
  void a_clock_set_back_keeps_the_count();
  void a_kill_while_the_clock_is_far_behind_keeps_the_count();
  void the_limit_ends();
  void strangers_get_their_share_day_by_day();
  void a_file_without_strangers_counts_none();
  void a_damaged_file_is_an_error_that_says_what_to_do();
  void a_full_disk_does_not_lose_the_count_in_memory();

 private:
  std::unique_ptr<testing::MemoryFileEnv> files_;
};

void TestTrafficCap::init() {
  files_ = std::make_unique<testing::MemoryFileEnv>();
  QVERIFY(files_->create_directories("/d").ok());
  QVERIFY(files_->sync_directory("/").ok());
}

void TestTrafficCap::a_clean_stop_keeps_the_exact_count() {
  const WallTime now = day(2026, 11, 3);
  {
    TrafficCap cap = open(*files_, 100 * mebi, now);
    QVERIFY(cap.count(12345, now).ok());
    QVERIFY(cap.save(now).ok());
  }
  TrafficCap cap = open(*files_, 100 * mebi, now);
  QCOMPARE(cap.used(now), 12345u);
  QCOMPARE(cap.left(now), 100 * mebi - 12345);
}

void TestTrafficCap::a_kill_never_forgets_a_byte() {
  const WallTime now = day(2026, 11, 3);
  std::uint64_t sent = 0;
  for (int life = 0; life < 5; ++life) {
    TrafficCap cap = open(*files_, 0, now);
    QVERIFY(cap.used(now) >= sent);
    QVERIFY(cap.used(now) <= sent + std::uint64_t(life) * 16 * mebi);
    for (int i = 0; i < 40; ++i) {
      QVERIFY(cap.count(3 * mebi / 2, now).ok());
      sent += 3 * mebi / 2;
    }
    files_->power_cut(testing::PowerCut::OnlySynced);  // and no save
  }
}

void TestTrafficCap::a_new_month_starts_at_zero() {
  const WallTime before = day(2026, 12, 31, 23);
  TrafficCap cap = open(*files_, 10 * mebi, before);
  QVERIFY(cap.count(9 * mebi, before).ok());
  QVERIFY(TrafficCap::next_month(before) == day(2027, 1, 1));
  const WallTime after = day(2027, 1, 1);
  QCOMPARE(cap.left(after), 10 * mebi);
  QVERIFY(cap.save(after).ok());
  QCOMPARE(open(*files_, 10 * mebi, after).used(after), 0u);
}

void TestTrafficCap::a_clock_set_back_keeps_the_count() {
  TrafficCap cap = open(*files_, 10 * mebi, day(2026, 11, 20));
  QVERIFY(cap.count(5 * mebi, day(2026, 11, 20)).ok());
  QCOMPARE(cap.used(day(2026, 10, 1)), 5 * mebi);
  QVERIFY(cap.save(day(2026, 10, 1)).ok());
  QCOMPARE(open(*files_, 10 * mebi, day(2026, 10, 1)).used(day(2026, 10, 1)), 5 * mebi);
}

// A computer that keeps no time starts with such a clock, and may be switched off before it is right.
void TestTrafficCap::a_kill_while_the_clock_is_far_behind_keeps_the_count() {
  const WallTime now = day(2026, 11, 20), behind = day(1970, 1, 1);
  {
    TrafficCap cap = open(*files_, 0, now);
    QVERIFY(cap.count(5 * mebi, now).ok());
    QVERIFY(cap.save(now).ok());
  }
  for (int life = 0; life < 2; ++life) {
    TrafficCap cap = open(*files_, 0, behind);
    QVERIFY(cap.count(3 * mebi, behind).ok());
    files_->power_cut(testing::PowerCut::OnlySynced);
  }
  {
    TrafficCap cap = open(*files_, 0, now);
    QVERIFY(cap.used(now) >= 11 * mebi);
    QVERIFY(cap.used(now) <= (11 + 2 * 16) * mebi);
    QVERIFY(cap.count(mebi, now).ok());
    files_->power_cut(testing::PowerCut::OnlySynced);
  }
  TrafficCap cap = open(*files_, 0, now);
  QVERIFY(cap.used(now) >= 12 * mebi);
  QCOMPARE(cap.used(day(2026, 12, 1)), 0u);
}

void TestTrafficCap::the_limit_ends() {
  const WallTime now = day(2026, 11, 3);
  TrafficCap cap = open(*files_, mebi, now);
  QVERIFY(cap.count(2 * mebi, now).ok());
  QCOMPARE(cap.left(now), 0u);
  cap.set_limit(3 * mebi);
  QCOMPARE(cap.left(now), mebi);
  cap.set_limit(0);
  QCOMPARE(cap.left(now), std::numeric_limits<std::uint64_t>::max());
}

void TestTrafficCap::strangers_get_their_share_day_by_day() {
  constexpr double share = 0.2;
  const WallTime first = day(2026, 11, 1), tenth = day(2026, 11, 10);
  {
    TrafficCap cap = open(*files_, 3000 * mebi, first);
    QCOMPARE(cap.left_to_strangers(share, first), 20 * mebi);
    QCOMPARE(cap.left_to_strangers(share, tenth), 200 * mebi);
    QVERIFY(cap.count_strangers(150 * mebi, tenth).ok());
    QVERIFY(cap.save(tenth).ok());
  }
  TrafficCap cap = open(*files_, 3000 * mebi, tenth);
  QCOMPARE(cap.left_to_strangers(share, tenth), 50 * mebi);
  QVERIFY(cap.count_strangers(60 * mebi, tenth).ok());
  QCOMPARE(cap.left_to_strangers(share, tenth), 0u);
  QCOMPARE(cap.left_to_strangers(share, day(2026, 11, 11)), 10 * mebi);
  QCOMPARE(cap.left_to_strangers(share, day(2026, 12, 31)), 600 * mebi);
  TrafficCap free = open(*files_, 0, tenth);
  QVERIFY(free.left_to_strangers(share, tenth) > 1000u * 1000 * mebi);
}

void TestTrafficCap::a_file_without_strangers_counts_none() {
  const WallTime now = day(2026, 11, 30);
  Bytes old{'N', 'S', 'T', 'C'};
  append_le(old, std::int32_t{12 * 2026 + 10});
  append_le(old, std::uint64_t{5000});
  QVERIFY(storage::write_file_atomic(*files_, path, old).ok());
  TrafficCap cap = open(*files_, 100 * mebi, now);
  QCOMPARE(cap.used(now), 5000u);
  QCOMPARE(cap.left_to_strangers(0.2, now), 20 * mebi);
}

void TestTrafficCap::a_damaged_file_is_an_error_that_says_what_to_do() {
  for (const std::string& content : {std::string("NSTC"), std::string(16, 'x'), std::string()}) {
    QVERIFY(storage::write_file_atomic(*files_, path, as_bytes(content)).ok());
    const auto cap = TrafficCap::open(*files_, path, 0, day(2026, 11, 3));
    QVERIFY(!cap.ok());
    QCOMPARE(cap.error().code, ErrorCode::Corrupt);
    QVERIFY(cap.error().message.find("remove it") != std::string::npos);
  }
}

void TestTrafficCap::a_full_disk_does_not_lose_the_count_in_memory() {
  const WallTime now = day(2026, 11, 3);
  TrafficCap cap = open(*files_, 10 * mebi, now);
  files_->set_capacity(0);
  QVERIFY(!cap.count(4 * mebi, now).ok());
  QCOMPARE(cap.used(now), 4 * mebi);
  files_->set_capacity(100 * mebi);
  QVERIFY(!cap.count(mebi, now).ok());
  QVERIFY(cap.count(16 * mebi, now).ok());
  QVERIFY(open(*files_, 10 * mebi, now).used(now) >= 21 * mebi);
}

NS_TEST(TestTrafficCap)
#include "test_traffic_cap.moc"
