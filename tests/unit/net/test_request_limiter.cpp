// How many requests a stranger may make, alone and as a neighbourhood, and what remembering it costs.
#include <QtTest>

#include "core/net/request_limiter.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

Caller caller(std::uint32_t number, std::uint8_t a, std::uint8_t b) {
  Caller from;
  for (std::size_t i = 0; i < 4; ++i) from.id[i] = static_cast<std::uint8_t>(number >> (8 * i));
  from.id[9] = 1;
  from.endpoint = {platform::IpAddress::v4(40, a, b, 1), 9000};
  return from;
}

const MonotonicTime start{};

}  // namespace

class TestRequestLimiter : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void one_caller_gets_its_burst_then_its_rate();
  void a_neighbourhood_shares_a_limit();
  void strangers_cost_bounded_memory();
};

void TestRequestLimiter::one_caller_gets_its_burst_then_its_rate() {
  RequestLimiter limiter({20, 100, 4096, 4}, false);
  int served = 0;
  for (int ms = 0; ms < 10'000; ++ms)
    served += limiter.admit(caller(1, 1, 1), start + std::chrono::milliseconds(ms));
  QVERIFY2(served >= 295 && served <= 301, qPrintable(QString::number(served)));
  QVERIFY(limiter.admit(caller(2, 9, 9), start));  // nobody else pays for it
}

void TestRequestLimiter::a_neighbourhood_shares_a_limit() {
  RequestLimiter near({20, 100, 4096, 4}, false), lan({20, 100, 4096, 4}, true);
  int served = 0, served_lan = 0;
  for (std::uint32_t id = 0; id < 1000; ++id) {
    served += near.admit(caller(id, 1, 1), start);
    served_lan += lan.admit(caller(id, 1, 1), start);
  }
  QCOMPARE(served, 400);
  QCOMPARE(served_lan, 1000);
  QVERIFY(near.admit(caller(5000, 1, 2), start));
}

void TestRequestLimiter::strangers_cost_bounded_memory() {
  RequestLimiter limiter({20, 100, 64, 4}, false);
  for (std::uint32_t id = 0; id < 10'000; ++id)
    limiter.admit(caller(id, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id)), start);
  QCOMPARE(limiter.remembered(), 64u);
}

NS_TEST(TestRequestLimiter)
#include "test_request_limiter.moc"
