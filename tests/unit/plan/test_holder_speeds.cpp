// The speeds that count, and the sessions that holders get by them.
#include <QtTest>

#include <numeric>

#include "core/plan/chain.h"
#include "core/plan/holder_speeds.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::plan;  // NOLINT

class TestPlanHolderSpeeds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_holder_counts_as_what_it_says() {
    QVERIFY(counted_speeds({}).empty());
    QCOMPARE(counted_speeds({0, 0}), (std::vector<double>{1, 1}));
    QCOMPARE(counted_speeds({5, 9, 7}), (std::vector<double>{5, 9, 7}));
  }
  void one_that_says_nothing_counts_as_the_others() {
    QCOMPARE(counted_speeds({4, 0, 10, 6}), (std::vector<double>{4, 6, 10, 6}));
    QCOMPARE(counted_speeds({4, 0, 10}), (std::vector<double>{4, 4, 10}));  // the lower median
  }
  void nobody_is_a_hundred_times_as_fast() {
    const auto counted = counted_speeds({10, 10, 10, 4'000'000'000u});
    QCOMPARE(counted, (std::vector<double>{10, 10, 10, 80}));
  }

  void equal_holders_share_evenly() {
    for (const std::size_t drivers : {3, 4, 12}) {
      const auto shares = shares_of_others({2, 2, 2}, drivers);
      for (const double share : shares) QVERIFY(std::abs(share - 1.0 / 3) < 1e-12);
    }
  }
  // Ten drivers: five sessions each by speed, of which one is its own, for the fast ones; the slow one has its own.
  void a_slow_holder_has_its_own_session_only() {
    const auto shares = shares_of_others({50, 45, 5}, 10);
    QCOMPARE(shares[2], 0.0);
    QVERIFY(std::abs(shares[0] - 4 / 7.5) < 1e-12 && std::abs(shares[1] - 3.5 / 7.5) < 1e-12);
    for (int place = 0; place < 1000; ++place) QVERIFY(holder_at(shares, place / 1000.0) != 2);
    QVERIFY(holder_at({0.5, 0.5 - 1e-9, 0}, 0.9999999999) == 1);
  }
  void places_on_the_line_go_around() {
    const std::vector<double> shares{0.25, 0.5, 0.25};
    const double places[] = {0, 0.2, 0.3, 0.7, 0.8, 1.1, 2.3};
    const std::size_t holders[] = {0, 0, 1, 1, 2, 0, 1};
    for (std::size_t i = 0; i < std::size(places); ++i) QCOMPARE(holder_at(shares, places[i]), holders[i]);
  }

  void the_work_of_ranges_is_that_of_their_units() {
    const GrowthRules rules = plan::test::mainnet_rules();
    const compute::ModelShape& shape = rules.minimum;
    const auto chain = Chain::of_shape(rules, shape, 1);
    QVERIFY2(chain.ok(), chain.ok() ? "" : chain.error().message.c_str());
    double sum = 0;
    for (const compute::StageRange& range : compute::cut_model(shape, 2)) {
      const std::uint32_t first = range.embed ? 0 : range.first_layer + 1;
      const std::uint32_t end = range.first_layer + range.layer_count + (range.head ? 2 : 1);
      const double work = range_work(shape, range);
      QVERIFY(std::abs(work / chain->work({first, end}) - 1) < 1e-12);
      sum += work;
    }
    QVERIFY(std::abs(sum / chain->work(chain->whole()) - 1) < 1e-12);
  }
};

NS_TEST(TestPlanHolderSpeeds)
#include "test_holder_speeds.moc"
