// Which nodes a driver of a network with parts uses: trusted and active ones, its own node for its own part, and other
// holders of the other parts in each round.
#include <QtTest>

#include "core/runtime/part_holders.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

// Two parts. Founders 0 and 1 hold the first, 2, 3 and 4 the second; a stranger joins with the second.
struct HoldersChain {
  ChainFixture chain{small_rules(chain::VotersMode::Invited, 2)};
  std::vector<std::size_t> founders = chain.add_nodes(5);
  std::size_t stranger = chain.add_node();
  const std::vector<compute::StageRange> parts{{0, 2, true, false}, {2, 2, false, true}};

  HoldersChain() {
    for (std::size_t i = 0; i < founders.size(); ++i)
      chain.set_rows(founders[i], chain::RowSet::of({i < 2 ? 0u : 1u}));
    chain.set_rows(stranger, chain::RowSet::of({1}));
    if (!chain.begin(founders).ok() || !chain.join(stranger)) qFatal("no chain");
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  PartHolders holders(std::size_t self, std::uint32_t part) const {
    return {parts, part, id(self), [this] { return chain.registry_ptr(); }};
  }
  std::set<net::NodeId> ids(std::initializer_list<std::size_t> nodes) const {
    std::set<net::NodeId> ids;
    for (const std::size_t node : nodes) ids.insert(id(node));
    return ids;
  }
};

std::set<net::NodeId> as_set(const std::vector<net::NodeId>& ids) {
  return {ids.begin(), ids.end()};
}

}  // namespace

class TestPartHolders : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void holders_are_trusted_members_of_the_part() {
    const HoldersChain all;
    const PartHolders holders = all.holders(all.founders[0], 0);
    const chain::Registry& registry = all.chain.registry();
    QVERIFY(as_set(holders.of_part(registry, 0)) == all.ids({all.founders[0], all.founders[1]}));
    QVERIFY(as_set(holders.of_part(registry, 1)) ==
            all.ids({all.founders[2], all.founders[3], all.founders[4]}));
    QVERIFY(as_set(holders.of_range(all.parts[1])) == as_set(holders.of_part(registry, 1)));
    QVERIFY(holders.of_range({1, 2, false, false}).empty());  // nobody's part
    QCOMPARE(holders.fewest(registry), std::size_t{2});
    QVERIFY(holders.admit(all.id(all.founders[3])).ok());
    QCOMPARE(holders.admit(all.id(all.stranger)).error().code, ErrorCode::Denied);
    QCOMPARE(holders.admit(net::NodeId{}).error().code, ErrorCode::Denied);
  }

  void a_driver_uses_its_own_node_for_its_part() {
    const HoldersChain all;
    for (const std::size_t self : {all.founders[0], all.founders[1]}) {
      const auto hops = all.holders(self, 0).for_training(all.chain.registry());
      QVERIFY(hops.ok());
      QCOMPARE(hops->size(), std::size_t{2});
      QVERIFY(hops->at(0).node == all.id(self) && hops->at(0).range == all.parts[0]);
      QVERIFY(hops->at(1).range == all.parts[1]);
    }
    const auto hops = all.holders(all.founders[4], 1).for_training(all.chain.registry());
    QVERIFY(hops.ok() && hops->at(1).node == all.id(all.founders[4]));
  }

  // The drivers of one part take different holders of another, and others in the next round.
  void the_others_share_the_work() {
    HoldersChain all;
    std::map<std::size_t, std::set<net::NodeId>> used;  // by driver
    for (int round = 0; round < 3; ++round) {
      std::set<net::NodeId> at_once;
      for (const std::size_t self : {all.founders[0], all.founders[1]}) {
        const auto hops = all.holders(self, 0).for_training(all.chain.registry());
        QVERIFY(hops.ok());
        at_once.insert(hops->at(1).node);
        used[self].insert(hops->at(1).node);
      }
      QCOMPARE(at_once.size(), std::size_t{2});
      QVERIFY(all.chain.round({}));
    }
    for (const auto& [self, nodes] : used)
      QVERIFY(nodes == all.ids({all.founders[2], all.founders[3], all.founders[4]}));
  }

  // Of each part one is fast. Speeds are stated one after the other; before, all count as the median.
  void nodes_of_one_rank_work_together() {
    HoldersChain all;
    QVERIFY(all.holders(all.founders[0], 0).speeds_together(all.chain.registry()).empty());
    const std::uint32_t stated[] = {4000, 1000, 5000, 1000, 1000};
    for (std::size_t i = 0; i < std::size(stated); ++i)
      QVERIFY(all.chain.say(all.founders[i], chain::Offer{8, stated[i]}));
    const auto together = all.holders(all.founders[0], 0).speeds_together(all.chain.registry());
    QCOMPARE(together, (std::vector<double>{5000, 7000}));
    std::set<net::NodeId> of_slow;
    for (int round = 0; round < 4; ++round) {
      const auto fast = all.holders(all.founders[0], 0).for_training(all.chain.registry());
      QVERIFY(fast.ok() && fast->at(1).node == all.id(all.founders[2]));
      const auto other = all.holders(all.founders[2], 1).for_training(all.chain.registry());
      QVERIFY(other.ok() && other->at(0).node == all.id(all.founders[0]));
      const PartHolders slow = all.holders(all.founders[1], 0);
      const auto slow_hops = slow.for_training(all.chain.registry());
      QVERIFY(slow_hops.ok());
      of_slow.insert(slow_hops->at(1).node);
      // Texts of two of three pass the fast one, which has four fifths of the speed.
      std::size_t by_fast = 0;
      for (const std::size_t self : {all.founders[2], all.founders[3], all.founders[4]}) {
        const auto text = all.holders(self, 1).for_text(all.chain.registry());
        QVERIFY(text.ok() && text->at(1).node == all.id(self));
        by_fast += text->at(0).node == all.id(all.founders[0]) ? 1 : 0;
      }
      QCOMPARE(by_fast, std::size_t{2});
      QVERIFY(all.chain.round({}));
    }
    QVERIFY(of_slow == all.ids({all.founders[3], all.founders[4]}));
  }

  void a_part_without_a_holder_is_named() {
    HoldersChain all;
    const PartHolders holders{
        {{0, 2, true, false}, {2, 1, false, false}, {3, 1, false, true}}, 0, all.id(all.founders[0]), [] {
          return chain::RegistryPtr();
        }};
    const auto hops = holders.for_training(all.chain.registry());
    QVERIFY(!hops.ok());
    QVERIFY2(QString::fromStdString(hops.error().message)
                 .contains("no member holds part 3 of the model: layer 3, head"),
             hops.error().message.c_str());
    // Without a history yet nobody is known.
    QVERIFY(!holders.admit(all.id(all.founders[0])).ok());
    QVERIFY(holders.of_range({0, 2, true, false}).empty());
  }
};

NS_TEST(TestPartHolders)
#include "test_part_holders.moc"
