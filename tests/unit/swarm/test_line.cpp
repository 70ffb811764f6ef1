// The members' records of their lines, on the simulated world: as fast as they are, or as the user
// allows, found out by what was fetched anyway.
#include <QtTest>

#include "core/net/traffic_meter.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr std::size_t piece = 256u << 10;

// Gets as many pieces from `giver` as there are, four at a time.
class Fetching {
 public:
  Fetching(Host& taker, const Host& giver, int pieces)
      : taker_(taker), giver_{giver.id, giver.endpoint}, left_(pieces) {
    for (int i = 0; i < 4; ++i) next();
  }
  bool done() const { return left_ == 0 && under_way_ == 0; }

 private:
  void next() {
    if (left_ == 0) return;
    --left_;
    ++under_way_;
    taker_.member->caller().call(giver_, net::Method::ContentPiece, Bytes{1}, 10 * minute,
                                 [this](const Expected<Bytes>& answer) {
                                   --under_way_;
                                   if (answer.ok()) return next();
                                   qWarning("%s", answer.error().describe().c_str());
                                   left_ = 0;
                                 });
  }
  Host& taker_;
  const net::Contact giver_;
  int left_ = 0, under_way_ = 0;
};

}  // namespace

class TestLine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void records_say_how_fast_a_line_is_data();
  void records_say_how_fast_a_line_is();
};

void TestLine::records_say_how_fast_a_line_is_data() {
  QTest::addColumn<double>("line");
  QTest::addColumn<qulonglong>("up_limit");
  QTest::addColumn<qulonglong>("down_limit");
  QTest::addColumn<double>("truth");
  QTest::addColumn<bool>("upload");  // shows, too
  QTest::newRow("lines of 1 MB/s") << 1e6 << 0ull << 0ull << 1e6 << true;
  QTest::newRow("lines of 5 MB/s") << 5e6 << 0ull << 0ull << 5e6 << true;
  QTest::newRow("who gives allows 1 MB/s") << 0.0 << 1'000'000ull << 0ull << 1e6 << true;
  // Then the other's line has nothing to do most of the time.
  QTest::newRow("who takes allows 1 MB/s") << 0.0 << 0ull << 1'000'000ull << 1e6 << false;
  QTest::newRow("the limit is over the line") << 1e6 << 5'000'000ull << 0ull << 1e6 << true;
}

void TestLine::records_say_how_fast_a_line_is() {
  QFETCH(double, line);
  QFETCH(qulonglong, up_limit);
  QFETCH(qulonglong, down_limit);
  QFETCH(double, truth);
  QFETCH(bool, upload);
  Village village(line, {up_limit, down_limit});
  Host& tracker = village.add({}, true);
  Host& giver = village.add({&tracker});
  Host& taker = village.add({&tracker});
  const auto serves = giver.member->methods().add(
      {net::Method::ContentPiece},
      net::MethodLimits(std::make_shared<net::RequestLimiter>(
          net::RequestLimits{.per_second = 1e6, .burst = 1e6, .bytes_per_second = 1e12, .bytes_burst = 1e12},
          true, 1)),
      [](const net::Caller&, net::Method, ByteSpan, const net::Reply& reply) { reply(Bytes(piece)); });
  const auto record = [&](const Host& of, const Host& at) {
    return at.member->book().find(of.id, village.world.clock().wall_now());
  };
  QVERIFY(village.run_until([&] { return record(giver, taker) && record(taker, giver); }, 5 * minute));
  village.world.run_for(2 * minute);
  QCOMPARE(record(giver, taker)->upload, std::uint64_t{0});  // small talk says nothing
  QCOMPARE(record(taker, giver)->download, std::uint64_t{0});

  Fetching fetching(taker, giver, static_cast<int>(20 * truth / piece));
  QVERIFY(village.run_until([&] { return fetching.done(); }, 2 * minute));
  QVERIFY(village.run_until([&] { return record(taker, giver)->download != 0; }, 5 * minute));
  village.world.run_for(2 * minute);
  const auto is_right = [&](std::uint64_t told) {
    if (std::abs(static_cast<double>(told) - truth) <= 0.1 * truth) return true;
    qWarning("%g instead of %g", static_cast<double>(told), truth);
    return false;
  };
  if (upload)
    QVERIFY(is_right(record(giver, taker)->upload));
  else
    QCOMPARE(record(giver, taker)->upload, std::uint64_t{0});
  QVERIFY(is_right(record(taker, giver)->download));
  QCOMPARE(record(giver, taker)->download, std::uint64_t{0});
  QCOMPARE(record(taker, giver)->upload, std::uint64_t{0});
  // Nothing happens: no further record because of it.
  const std::uint64_t sequence = record(giver, taker)->sequence;
  village.world.run_for(10 * minute);
  QCOMPARE(record(giver, taker)->sequence, sequence);
}

NS_TEST(TestLine)
#include "test_line.moc"
