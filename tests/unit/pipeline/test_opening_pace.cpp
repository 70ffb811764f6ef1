// Streams of sessions that a node opens: as fast as its peers allow, and never faster.
#include <QtTest>

#include "core/base/rng.h"
#include "core/pipeline/opening_pace.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;

class TestOpeningPace : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_few_open_at_once() {
    OpeningPace pace;
    MonotonicTime now{};
    for (int i = 0; i < 40; ++i) QCOMPARE(pace.wait(net::NodeId{1}, now), Duration::zero());
    QVERIFY(pace.wait(net::NodeId{1}, now) > Duration::zero());
    QCOMPARE(pace.wait(net::NodeId{2}, now), Duration::zero());
  }

  // A user writes hundreds of short texts, in bursts and pauses.
  void the_peer_refuses_none() {
    Rng rng(7);
    OpeningPace pace;
    net::RequestLimiter limiter(stream_limits, false, 1);
    const net::Caller self{net::NodeId{9}, {}};
    MonotonicTime now{};
    std::multiset<MonotonicTime> arrivals;
    for (int i = 0; i < 2000; ++i) {
      if (rng.below(20) == 0) now += std::chrono::milliseconds(rng.below(20'000));
      arrivals.insert(now + pace.wait(net::NodeId{1}, now));
    }
    for (const MonotonicTime at : arrivals) QVERIFY(limiter.admit(self, at, 0, net::PeerRank::Known));
    // And they are not much later than the peer allows.
    const double seconds = to_seconds(*arrivals.rbegin() - MonotonicTime{});
    QVERIFY2(seconds < 1.3 * std::max(to_seconds(now - MonotonicTime{}), 2000 / stream_limits.per_second),
             qPrintable(QString::number(seconds)));
  }

  void it_forgets_peers_that_rest() {
    OpeningPace pace;
    MonotonicTime now{};
    for (std::size_t i = 0; i < OpeningPace::most_peers; ++i) {
      net::NodeId peer{};
      peer[0] = static_cast<std::uint8_t>(i);
      peer[1] = static_cast<std::uint8_t>(i >> 8);
      (void)pace.wait(peer, now);
    }
    QCOMPARE(pace.remembered(), OpeningPace::most_peers);
    now += std::chrono::seconds(30);
    (void)pace.wait(net::NodeId{255, 255, 255}, now);
    QCOMPARE(pace.remembered(), std::size_t{1});
  }
};

NS_TEST(TestOpeningPace)
#include "test_opening_pace.moc"
