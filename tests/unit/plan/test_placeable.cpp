// Shapes by what nodes can hold, changes of them, and what nodes keep through a change.
#include <QtTest>

#include "core/compute/growth.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::plan;
using namespace neuroshard::plan::test;

namespace {

Expected<Chain> make(const compute::ModelShape& shape) {
  return Chain::of_shape(mainnet_rules(), shape, shape.hidden);
}

std::vector<PlanPeer> peers_of(std::size_t count, std::uint64_t seed = 1) {
  Rng rng(seed);
  return random_peers(rng, count);
}

double copies_of(const compute::ModelShape& shape, const std::vector<PlanPeer>& peers) {
  return holdable_copies(make(shape).value(), peers, PlanOptions());
}

}  // namespace

class TestPlaceable : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void more_replicas_make_a_smaller_model() {
    const std::vector<PlanPeer> peers = peers_of(200);
    std::uint64_t before = UINT64_MAX;
    for (const std::uint32_t replicas : {2u, 5u, 12u}) {
      PlanOptions options;
      options.replicas = replicas;
      options.useful_share = 0;
      const PlaceableShape found = placeable_shape(mainnet_rules(), peers, options, make);
      QVERIFY(found.copies >= replicas / 0.8);
      QVERIFY(compute::model_parameter_count(found.shape) < before);
      before = compute::model_parameter_count(found.shape);
    }
  }

  // The rung after the chosen one misses at least one condition.
  void the_next_shape_says_what_it_needs() {
    for (const double share : {0.0, 0.75}) {
      for (const std::size_t count : {3, 12, 60, 300}) {
        const std::vector<PlanPeer> peers = peers_of(count);
        std::uint64_t contributed = 0;
        for (const PlanPeer& peer : peers) contributed += counted_bytes(peer.memory);
        PlanOptions options;
        options.useful_share = share;
        const PlaceableShape found = placeable_shape(mainnet_rules(), peers, options, make);
        QVERIFY(found.next.has_value());
        QVERIFY(compute::model_parameter_count(found.next->rung.shape) >
                compute::model_parameter_count(found.shape));
        QCOMPARE(found.next->copies, copies_of(found.next->rung.shape, peers));
        QVERIFY(found.next->rung.required_bytes > contributed || found.next->copies < found.needed_copies ||
                found.next->useful_share < share);
      }
    }
  }

  // The same map of layers as the weights' (compute/growth.h).
  void carried_layers_are_those_of_growth() {
    compute::ModelShape smaller = mainnet_rules().minimum, larger = smaller;
    for (smaller.layers = 1; smaller.layers <= 12; ++smaller.layers) {
      for (larger.layers = smaller.layers; larger.layers <= 24; ++larger.layers) {
        for (std::uint32_t layer = 0; layer < smaller.layers; ++layer) {
          const UnitRange carried = carried_range({layer + 1, layer + 2}, smaller.layers, larger.layers);
          const auto from =
              compute::grown_from(smaller, larger, {compute::SlotKind::Layer, carried.first - 1, 0});
          QVERIFY(from && from->layer == layer);
          for (std::uint32_t unit = carried.first + 1; unit < carried.end; ++unit)
            QVERIFY(!compute::grown_from(smaller, larger, {compute::SlotKind::Layer, unit - 1, 0}));
        }
      }
    }
  }

  // Most nodes have a layer, however large the network is.
  void most_nodes_fit_a_layer() {
    const std::vector<PlanPeer> peers = peers_of(1'000);
    PlanOptions options;
    const auto fitting = [&] {
      const Chain chain = make(placeable_shape(mainnet_rules(), peers, options, make).shape).value();
      return std::count_if(peers.begin(), peers.end(), [&](const PlanPeer& peer) {
        return usable_bytes(peer, options.baseline_bytes) >= chain.memory({1, 2});
      });
    };
    QVERIFY(fitting() >= 750);
    options.useful_share = 0;
    QVERIFY(fitting() < 750);
  }

  // From the shape that some nodes allow, up and down with others, and never to and fro with the same.
  void shapes_change_with_hysteresis() {
    const GrowthRules rules = mainnet_rules();
    PlanOptions options;
    options.replicas = 3;
    const std::vector<PlanPeer> few = peers_of(12), many = peers_of(200);
    const compute::ModelShape small = placeable_shape(rules, few, options, make).shape;
    const Change up = decide_placeable_change(rules, small, many, options, make);
    QVERIFY(up.kind == ChangeKind::Upgrade);
    QVERIFY(copies_of(up.shape, many) >= 3 / 0.8 * 1.5);
    QVERIFY(up.shape.layers >= small.layers && up.shape.hidden >= small.hidden);
    QVERIFY(decide_placeable_change(rules, up.shape, many, options, make).kind == ChangeKind::Keep);
    const Change down = decide_placeable_change(rules, up.shape, few, options, make);
    QVERIFY(down.kind == ChangeKind::Downgrade);
    QVERIFY(copies_of(up.shape, few) < 2 / 0.8 && copies_of(down.shape, few) >= 3 / 0.8);
    // Between: enough for two copies, not for three.
    std::vector<PlanPeer> between = many;
    while (copies_of(up.shape, between) > 3) between.pop_back();
    QVERIFY(decide_placeable_change(rules, up.shape, between, options, make).kind == ChangeKind::Keep);
  }

  // Every layer of the model after a change belongs to one layer before it, whatever the ranges.
  void ranges_are_carried_over() {
    for (std::uint32_t before = 1; before <= 20; ++before) {
      for (std::uint32_t after = 1; after <= 20; ++after) {
        std::vector<int> seen(after + 2, 0);
        for (std::uint32_t unit = 0; unit < before + 2; ++unit) {
          const UnitRange carried = carried_range({unit, unit + 1}, before, after);
          for (std::uint32_t to = carried.first; to < carried.end; ++to) {
            ++seen[to];
            if (unit == 0) QCOMPARE(to, 0u);
            if (unit == before + 1) QCOMPARE(to, after + 1);
            if (unit == 0 || unit == before + 1) continue;
            const std::uint32_t l = unit - 1, m = to - 1;
            if (after <= before) QCOMPARE(l, m * before / after);
            if (after >= before) QVERIFY(l * after / before <= m && m < (l + 1) * after / before);
          }
        }
        for (const int times : seen) QCOMPARE(times, 1);
        QVERIFY(carried_range({0, before + 2}, before, after) == (UnitRange{0, after + 2}));
        QVERIFY(carried_range({}, before, after).empty());
      }
    }
  }

  void a_slow_line_limits_the_memory_that_counts() {
    PlanPeer peer{"a", "a", 16 * plan::test::gigabyte, 1e12, 1e6, 2e6};
    QCOMPARE(counted_memory(peer, 1e18, 0), 16 * plan::test::gigabyte);
    // 2 MB/s for 1,000 seconds are 2 GB of weights and momentum: 4 GB while they are trained.
    QCOMPARE(counted_memory(peer, 1'000, 256), 4 * plan::test::gigabyte + 256);
    QCOMPARE(counted_memory(peer, 0, 256), 256u);
    QCOMPARE(counted_memory(peer, 3'999, 10 * plan::test::gigabyte),
             16 * plan::test::gigabyte);  // never more than it has
  }
};

NS_TEST(TestPlaceable)
#include "test_placeable.moc"
