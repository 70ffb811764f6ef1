// Registries as they would be: the same as after blocks that do it, and the one before stays as it is.
#include <QtTest>

#include "core/chain/size_demand.h"
#include "core/chain/supposed.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

class TestChainSupposed : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_offer_counts_as_one_in_a_block() {
    ChainFixture chain;
    const auto nodes = chain.add_nodes(3);
    QVERIFY(chain.begin(nodes).ok());
    const RegistryPtr before = chain.registry_ptr();
    const std::uint32_t number = chain.number(nodes[1]);
    const RegistryPtr then = with_offer(chain.rules(), *before, number, 7);
    QVERIFY(chain.say(nodes[1], Offer{7}));
    QCOMPARE(then->find(number)->memory_tiers, chain.registry().find(number)->memory_tiers);
    QCOMPARE(before->find(number)->memory_tiers, 0u);
    QCOMPARE(offers_for({}, *then, Counted::Active).tiers, std::uint64_t{7});
    QVERIFY(then->height() == chain.registry().height() && then->active() == chain.registry().active());
    // At once after another one, although no block could have it.
    QCOMPARE(with_offer(chain.rules(), chain.registry(), number, 9)->find(number)->memory_tiers, 9u);
    QVERIFY(!chain.refusal(nodes[1], Offer{9}).empty());
  }

  void a_member_leaves_as_by_a_block() {
    ChainFixture chain;
    auto nodes = chain.add_nodes(3);
    nodes.push_back(chain.add_node_of(chain.wallet_index(nodes[0])));
    QVERIFY(chain.begin(nodes).ok());
    for (const std::size_t leaver : {nodes[3], nodes[1]}) {
      const RegistryPtr before = chain.registry_ptr();
      const std::uint32_t number = chain.number(leaver);
      const RegistryPtr then = without_member(chain.rules(), *before, number);
      QVERIFY(chain.say(leaver, Leave{}));
      QVERIFY(then->members() == chain.registry().members() && then->wallets() == chain.registry().wallets());
      QVERIFY(then->active() == chain.registry().active() && then->find(number) == nullptr);
      QCOMPARE(make_committee(chain.rules(), *then)->units(), chain.committee()->units());
      QVERIFY(before->find(number) != nullptr);
    }
  }

  void nobody_may_be_left() {
    ChainFixture chain;
    const auto nodes = chain.add_nodes(1);
    QVERIFY(chain.begin(nodes).ok());
    const RegistryPtr then = without_member(chain.rules(), chain.registry(), chain.number(nodes[0]));
    QVERIFY(then->members().empty() && then->voter_count() == 0);
    QCOMPARE(offers_for({}, *then, Counted::Active).units, std::uint64_t{0});
  }

  void votes_that_lack_without_a_member() {
    for (const auto& [count, at_once, after] : {std::tuple{2u, 5u, 1u}, {3u, 1u, 0u}, {4u, 0u, 0u}}) {
      ChainFixture chain;
      const auto nodes = chain.add_nodes(count);
      QVERIFY(chain.begin(nodes).ok());
      const VotesWithout votes = votes_without(chain.rules(), chain.registry(), chain.number(nodes[0]));
      QCOMPARE(votes.all, std::uint64_t{12 * count});
      QCOMPARE(votes.others, votes.all - 12);
      QCOMPARE(votes.lacking_at_once, std::uint64_t{at_once});
      QCOMPARE(votes.lacking_after_stall, std::uint64_t{after});
    }
  }

  void the_fewest_members_without_room() {
    ChainFixture chain;
    auto nodes = chain.add_nodes(3);
    nodes.push_back(chain.add_node_of(chain.wallet_index(nodes[0])));  // of 6 units each
    QVERIFY(chain.begin(nodes).ok());
    const auto lacking = [&](std::uint32_t percent) {
      SizeOffers offers = offers_for(SizeNeeds{4, 8}, chain.registry(), Counted::Active);
      offers.room_percent = percent;
      return members_lacking(offers, chain.registry(), Counted::Active);
    };
    QCOMPARE(lacking(50), 2u);  // 18 of 36
    QCOMPARE(lacking(75), 3u);  // 27
    QCOMPARE(lacking(100), 4u);
    QVERIFY(chain.say(nodes[1], Offer{4}));
    QCOMPARE(lacking(50), 1u);
    QCOMPARE(lacking(30), 0u);
    QCOMPARE(members_lacking({}, chain.registry(), Counted::Active), 0u);
    QVERIFY(is_counted(chain.registry(), chain.number(nodes[1]), Counted::Active));
    QVERIFY(chain.say(nodes[1], Away{}));
    QVERIFY(!is_counted(chain.registry(), chain.number(nodes[1]), Counted::Active));
    QVERIFY(is_counted(chain.registry(), chain.number(nodes[1]), Counted::Seen));
  }
};

NS_TEST(TestChainSupposed)
#include "test_supposed.moc"
