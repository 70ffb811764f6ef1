// Fetches that strangers cause: how often this node makes them, and out of which share of the month's data.
#include <QtTest>

#include "core/chain/stranger_fetches.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr std::size_t mebi = 1u << 20;

net::Caller stranger(std::uint32_t number, std::uint8_t group) {
  net::Caller from;
  store_le(from.id.data(), number);
  from.endpoint = {platform::IpAddress::v4(40, 1, group, 1), 9000};
  return from;
}

}  // namespace

class TestStrangerFetches : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void large_answers_end_the_fetches();
  void all_strangers_have_one_limit();
  void the_month_has_a_share_for_strangers();

 private:
  ManualClock clock_;
  NullLogger logger_;
};

void TestStrangerFetches::large_answers_end_the_fetches() {
  StrangerFetches fetches(clock_, nullptr, 1);
  const net::Caller one = stranger(1, 1);
  int answers = 0;
  for (; fetches.admit(one); ++answers) fetches.answered({one.id, one.endpoint}, 3 * mebi);
  QCOMPARE(answers, 2);  // 5 MiB at once
  clock_.advance(15 * std::chrono::seconds(1));
  QVERIFY(!fetches.admit(one));
  clock_.advance(2 * std::chrono::seconds(1));  // 64 KiB a second
  QVERIFY(fetches.admit(one));
}

void TestStrangerFetches::all_strangers_have_one_limit() {
  StrangerFetches fetches(clock_, nullptr, 1);
  int admitted = 0;
  for (std::uint32_t id = 0; id < 10'000; ++id)
    admitted += fetches.admit(stranger(id, static_cast<std::uint8_t>(id % 100)));
  QCOMPARE(admitted, 32);
}

void TestStrangerFetches::the_month_has_a_share_for_strangers() {
  testing::MemoryFileEnv files;
  auto cap = net::TrafficCap::open(files, "/traffic", 31 * mebi, clock_.wall_now());
  QVERIFY(cap.ok());
  net::TrafficMeter meter(clock_, logger_, {}, &*cap);
  StrangerFetches fetches(clock_, &meter, 1), free(clock_, nullptr, 1);
  const net::Caller first = stranger(1, 1), second = stranger(2, 2);
  QVERIFY(fetches.admit(first));
  for (StrangerFetches* each : {&fetches, &free}) each->answered({first.id, first.endpoint}, 8 * mebi);
  QVERIFY(free.admit(second));
  QVERIFY(!fetches.admit(second));  // a fifth of 31 MiB
  QVERIFY(meter.check().ok());      // members are served
}

NS_TEST(TestStrangerFetches)
#include "test_stranger_fetches.moc"
