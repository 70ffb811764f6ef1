// The owners of units: nodes of one owner count once, and nobody leaves a unit that two owners would not keep.
#include <QtTest>

#include "core/base/rng.h"
#include "core/plan/architecture.h"
#include "core/sim/unit_owners.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

using Counts = std::vector<std::uint32_t>;

std::vector<bool> go(std::vector<RangeSwitch> nodes, std::uint32_t units) {
  keep_replicas(&nodes, units);
  std::vector<bool> gone;
  for (const RangeSwitch& node : nodes) gone.push_back(node.goes);
  return gone;
}

}  // namespace

class TestUnitOwners : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_of_one_owner_count_once();
  void a_node_goes_where_two_owners_stay();
  void two_nodes_of_one_owner_are_no_two_owners();
  void of_three_that_would_go_one_goes();
  void nodes_change_places();
  void no_unit_that_has_two_owners_loses_one_of_them();
};

void TestUnitOwners::nodes_of_one_owner_count_once() {
  QCOMPARE(count_owners({}, 2), (Counts{0, 0}));
  QCOMPARE(count_owners({{{0, 2}, 0}, {{1, 3}, 0}, {{1, 2}, 4}, {{2, 2}, 1}}, 4), (Counts{1, 2, 1, 0}));
}

void TestUnitOwners::a_node_goes_where_two_owners_stay() {
  const RangeSwitch stays{{0, 1}, {0, 1}, 0, false}, other{{0, 1}, {0, 1}, 1, false};
  const RangeSwitch leaves{{0, 1}, {1, 2}, 2, true};
  QCOMPARE(go({stays, other, leaves}, 2), (std::vector<bool>{false, false, true}));
  QCOMPARE(go({stays, leaves}, 2), (std::vector<bool>{false, false}));
}

void TestUnitOwners::two_nodes_of_one_owner_are_no_two_owners() {
  const RangeSwitch one{{0, 1}, {0, 1}, 0, false}, leaves{{0, 1}, {1, 2}, 2, true};
  QCOMPARE(go({one, one, leaves}, 2), (std::vector<bool>{false, false, false}));
}

// Together they would leave it with none.
void TestUnitOwners::of_three_that_would_go_one_goes() {
  std::vector<RangeSwitch> nodes;
  for (std::uint32_t owner = 0; owner < 3; ++owner) nodes.push_back({{0, 1}, {1, 2}, owner, true});
  QCOMPARE(go(nodes, 2), (std::vector<bool>{false, false, true}));
}

// Each brings the unit that the other one leaves.
void TestUnitOwners::nodes_change_places() {
  const RangeSwitch left{{0, 1}, {0, 1}, 0, false}, right{{1, 2}, {1, 2}, 1, false};
  const RangeSwitch to_right{{0, 1}, {1, 2}, 2, true}, to_left{{1, 2}, {0, 1}, 3, true};
  QCOMPARE(go({left, right, to_right, to_left}, 2), (std::vector<bool>{false, false, true, true}));
}

void TestUnitOwners::no_unit_that_has_two_owners_loses_one_of_them() {
  Rng rng(5);
  constexpr std::uint32_t units = 6;
  const auto range = [&] {
    const auto first = static_cast<std::uint32_t>(rng.below(units));
    return plan::UnitRange{first, first + 1 + static_cast<std::uint32_t>(rng.below(units - first))};
  };
  int gone = 0;
  for (int run = 0; run < 500; ++run) {
    std::vector<RangeSwitch> nodes;
    std::vector<ServedRange> before, after;
    for (int i = 0; i < 8; ++i)
      nodes.push_back({range(), range(), static_cast<std::uint32_t>(rng.below(5)), rng.below(2) == 0});
    for (const RangeSwitch& node : nodes) before.push_back({node.serving, node.owner});
    keep_replicas(&nodes, units);
    for (const RangeSwitch& node : nodes) {
      after.push_back({node.goes ? node.wanted : node.serving, node.owner});
      gone += node.goes ? 1 : 0;
    }
    const Counts had = count_owners(before, units), has = count_owners(after, units);
    for (std::uint32_t unit = 0; unit < units; ++unit)
      QVERIFY(has[unit] >= std::min(had[unit], plan::least_replicas));
  }
  QVERIFY(gone > 100);  // the rule does not hold all of them
}

NS_TEST(TestUnitOwners)
#include "test_unit_owners.moc"
