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
  void many_ids_reset_no_limit();
  void refused_calls_cost_nobody_else_anything();
  void known_callers_are_remembered_beside_strangers();
};

void TestRequestLimiter::one_caller_gets_its_burst_then_its_rate() {
  RequestLimiter limiter({20, 100, 4096, 4}, false, 1);
  int served = 0;
  for (int ms = 0; ms < 10'000; ++ms)
    served += limiter.admit(caller(1, 1, 1), start + std::chrono::milliseconds(ms));
  QVERIFY2(served >= 295 && served <= 301, qPrintable(QString::number(served)));
  QVERIFY(limiter.admit(caller(2, 9, 9), start));  // nobody else pays for it
}

void TestRequestLimiter::a_neighbourhood_shares_a_limit() {
  RequestLimiter near({20, 100, 4096, 4}, false, 1), lan({20, 100, 4096, 4}, true, 1);
  int served = 0, served_lan = 0;
  for (std::uint32_t id = 0; id < 1000; ++id) {
    served += near.admit(caller(id, 1, 1), start);
    served_lan += lan.admit(caller(id, 1, 1), start);
  }
  QCOMPARE(served, 400);
  QCOMPARE(served_lan, 1000);
  QVERIFY(near.admit(caller(5000, 1, 2), start));
}

// Two prefixes and 10,000 ids, whose turns are as the attacker likes: first all calls of one prefix, then those that
// make the limiter remember others, then the first again.
void TestRequestLimiter::many_ids_reset_no_limit() {
  RequestLimiter limiter({20, 100, 4096, 4}, false, 1);
  int served = 0;
  std::uint32_t id = 0;
  for (int i = 0; i < 500; ++i) served += limiter.admit(caller(id++, 1, 1), start);
  for (int i = 0; i < 9000; ++i) served += limiter.admit(caller(id++, 1, 2), start);
  for (int i = 0; i < 500; ++i) served += limiter.admit(caller(id++, 1, 1), start);
  QCOMPARE(id, 10'000u);
  QCOMPARE(served, 800);  // what two groups may call at once
}

// They cost no bucket of anybody: also not where ids share buckets.
void TestRequestLimiter::refused_calls_cost_nobody_else_anything() {
  RequestLimiter limiter({20, 100, 4096, 4}, false, 1);
  for (std::uint32_t id = 0; id < 500'000; ++id) static_cast<void>(limiter.admit(caller(id, 1, 1), start));
  int served = 0;
  for (std::uint32_t id = 0; id < 100; ++id)
    served += limiter.admit(caller(1'000'000 + id, 7, static_cast<std::uint8_t>(id)), start);
  QCOMPARE(served, 100);
}

// Known callers each have their own limit, and strangers make them lose nothing.
void TestRequestLimiter::known_callers_are_remembered_beside_strangers() {
  RequestLimiter limiter({20, 100, 64, 4}, false, 1);
  const auto known = [&](std::uint32_t id) {
    return limiter.admit(caller(id, 1, 1), start, 0, PeerRank::Known);
  };
  for (int call = 0; call < 100; ++call) QVERIFY(known(1));
  for (std::uint32_t id = 0; id < 10'000; ++id)
    static_cast<void>(
        limiter.admit(caller(id, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id)), start));
  QVERIFY(!known(1));
  QCOMPARE(limiter.remembered(), 1u);
  for (std::uint32_t id = 2; id < 1000; ++id) QVERIFY(known(id));
  QCOMPARE(limiter.remembered(), 64u);
}

NS_TEST(TestRequestLimiter)
#include "test_request_limiter.moc"
