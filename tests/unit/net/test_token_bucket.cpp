// The token bucket: how much passes in a long time, whatever the sizes of the pieces.
#include <QtTest>

#include "core/base/rng.h"
#include "core/net/token_bucket.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

MonotonicTime at(Duration since_start) {
  return MonotonicTime(since_start);
}

// Sends pieces of random sizes up to `largest` as fast as the bucket lets it; bytes per second over `span`.
double achieved(double rate, double burst, double largest, Duration span) {
  Rng rng(7);
  TokenBucket bucket(rate, burst, at(Duration(0)));
  MonotonicTime now = at(Duration(0));
  double sent = 0;
  while (now < at(span)) {
    const double piece = 1 + largest * rng.uniform();
    now += bucket.take(piece, now);
    if (now < at(span)) sent += piece;
  }
  return sent / to_seconds(span);
}

}  // namespace

class TestTokenBucket : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_average_is_the_rate_data();
  void the_average_is_the_rate();
  void a_burst_passes_at_once_and_no_more();
  void nothing_passes_at_rate_zero();
  void time_that_stands_still_or_goes_back_gives_nothing();
};

void TestTokenBucket::the_average_is_the_rate_data() {
  QTest::addColumn<double>("rate");
  QTest::addColumn<double>("burst");
  QTest::addColumn<double>("largest");
  QTest::newRow("small pieces") << 125'000.0 << 16'384.0 << 1'400.0;
  QTest::newRow("pieces of a tensor") << 125'000.0 << 65'536.0 << 262'144.0;
  QTest::newRow("pieces larger than a second's worth") << 10'000.0 << 10'000.0 << 100'000.0;
  QTest::newRow("fast") << 125e6 << 1e6 << 262'144.0;
}

void TestTokenBucket::the_average_is_the_rate() {
  QFETCH(double, rate);
  QFETCH(double, burst);
  QFETCH(double, largest);
  const double ratio = achieved(rate, burst, largest, seconds(600)) / rate;
  QVERIFY2(ratio > 0.95 && ratio < 1.05, qPrintable(QString::number(ratio)));
}

void TestTokenBucket::a_burst_passes_at_once_and_no_more() {
  TokenBucket bucket(10, 100, at(Duration(0)));
  for (int i = 0; i < 100; ++i) QVERIFY(bucket.try_take(1, at(Duration(0))));
  QVERIFY(!bucket.try_take(1, at(Duration(0))));
  QVERIFY(!bucket.try_take(1, at(milliseconds(99))));
  QVERIFY(bucket.try_take(1, at(milliseconds(100))));
  QCOMPARE(bucket.available(at(seconds(1000))), 100.0);
}

void TestTokenBucket::nothing_passes_at_rate_zero() {
  TokenBucket bucket(0, 0, at(Duration(0)));
  QVERIFY(!bucket.try_take(1, at(std::chrono::hours(1000))));
  QVERIFY(bucket.take(1, at(std::chrono::hours(1000))) == Duration::max());
}

void TestTokenBucket::time_that_stands_still_or_goes_back_gives_nothing() {
  TokenBucket bucket(1, 1, at(seconds(10)));
  QVERIFY(bucket.try_take(1, at(seconds(10))));
  QVERIFY(!bucket.try_take(1, at(seconds(5))));
  QVERIFY(!bucket.try_take(1, at(seconds(10))));
  QVERIFY(bucket.try_take(1, at(seconds(11))));
}

NS_TEST(TestTokenBucket)
#include "test_token_bucket.moc"
