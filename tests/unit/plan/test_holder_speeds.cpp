// The speeds that count, and which holders work together by them.
#include <QtTest>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/rng.h"
#include "core/plan/chain.h"
#include "core/plan/holder_speeds.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::plan;  // NOLINT

namespace {

// Each holder of a wallet of its own.
std::vector<double> counted(const std::vector<std::uint32_t>& speeds) {
  std::vector<SaidSpeed> said;
  for (const std::uint32_t speed : speeds) said.push_back({speed, static_cast<std::uint32_t>(said.size())});
  return counted_speeds(said);
}

}  // namespace

class TestPlanHolderSpeeds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_holder_counts_as_what_it_says() {
    QVERIFY(counted({}).empty());
    QCOMPARE(counted({0, 0}), (std::vector<double>{1, 1}));
    QCOMPARE(counted({5, 9, 7}), (std::vector<double>{5, 9, 7}));
  }
  void one_that_says_nothing_counts_as_the_others() {
    QCOMPARE(counted({4, 0, 10, 6}), (std::vector<double>{4, 6, 10, 6}));
    QCOMPARE(counted({4, 0, 10}), (std::vector<double>{4, 4, 10}));  // the lower median
  }
  void nobody_is_a_hundred_times_as_fast() {
    QCOMPARE(counted({10, 10, 10, 4'000'000'000u}), (std::vector<double>{10, 10, 10, 80}));
  }
  // More nodes of a wallet than of all others together leave the median where it is.
  void nobody_moves_the_median_with_more_nodes() {
    std::vector<SaidSpeed> said{{10, 1}, {10, 2}, {10, 3}};
    for (int node = 0; node < 20; ++node) said.push_back({4'000'000'000u, 4});
    const std::vector<double> speeds = counted_speeds(said);
    QCOMPARE(speeds.front(), 10.0);
    QCOMPARE(*std::max_element(speeds.begin(), speeds.end()), 80.0);
  }

  void each_holder_is_as_wide_as_its_share() {
    const SpeedLine line({5, 50, 45});
    QCOMPARE(line.middle(1), 0.25);
    QCOMPARE(line.middle(2), 0.725);
    QCOMPARE(line.middle(0), 0.975);
    const double places[] = {0, 0.49, 0.51, 0.94, 0.96, 0.9999999999999999};
    const std::size_t holders[] = {1, 1, 2, 2, 0, 0};
    for (std::size_t i = 0; i < std::size(places); ++i) QCOMPARE(line.at(places[i]), holders[i]);
  }
  // 4 holders of one part and 3 of the other, one in each four times as fast as the others.
  void ranks_meet() {
    const SpeedLine four({1, 4, 1, 1}), three({4, 1, 1});
    QCOMPARE(three.at(four.middle(1)), std::size_t{0});
    QCOMPARE(four.at(three.middle(0)), std::size_t{1});
    for (const std::size_t slow : {1, 2}) QVERIFY(four.at(three.middle(slow)) != 1);
  }
  // The slow one stays at its end.
  void holders_of_about_the_same_speed_take_turns() {
    std::set<std::size_t> at_a_fifth, at_the_end;
    for (std::uint64_t turn = 0; turn < 6; ++turn) {
      const SpeedLine line({10, 11, 9, 1}, turn);
      at_a_fifth.insert(line.at(0.2));
      at_the_end.insert(line.at(0.99));
    }
    QCOMPARE(at_a_fifth, (std::set<std::size_t>{0, 1, 2}));
    QCOMPARE(at_the_end, (std::set<std::size_t>{3}));
  }
  // Drivers with rates in proportion to their speeds, on 200 pairs of random parts: over the turns no holder gets more than twice what
  // its speed is of the network's, whatever the speeds beside are, and the parts as wholes get the same.
  void holders_get_work_in_proportion_to_their_speeds() {
    Rng draw(7);
    for (int pair = 0; pair < 200; ++pair) {
      const auto speeds = [&draw] {
        std::vector<double> made;
        for (std::size_t i = 0; i < 8 + draw.below(9); ++i)
          made.push_back(1.0 + static_cast<double>(draw.below(100)) / 20);
        return made;
      };
      const std::vector<double> drivers = speeds(), holders = speeds();
      const double all = std::accumulate(drivers.begin(), drivers.end(), 0.0);
      const double room = std::accumulate(holders.begin(), holders.end(), 0.0);
      std::vector<double> got(holders.size());
      constexpr int turns = 60;
      const SpeedLine places(drivers);
      for (int turn = 0; turn < turns; ++turn)
        for (std::size_t i = 0; i < drivers.size(); ++i)
          got[SpeedLine(holders, static_cast<std::uint64_t>(turn)).at(places.middle(i))] +=
              drivers[i] / all / turns;
      for (std::size_t i = 0; i < holders.size(); ++i)
        QVERIFY2(
            got[i] < 2 * holders[i] / room,
            qPrintable(
                QString("pair %1, holder %2: %3 of %4").arg(pair).arg(i).arg(got[i]).arg(holders[i] / room)));
    }
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
