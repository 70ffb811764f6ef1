// Memory that members offer, in the registry.
#include <QtTest>
#include <limits>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;

namespace {

struct Three {
  ChainFixture chain;
  std::vector<std::size_t> nodes = chain.add_nodes(3);
  Three() {
    if (!chain.begin(nodes).ok()) qFatal("no chain");
  }
};

}  // namespace

Q_DECLARE_METATYPE(neuroshard::chain::Offer)

class TestChainRegistryOffers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_newest_offer_stands() {
    Three t;
    QVERIFY(t.chain.say(t.nodes[0], Offer{16}));
    QCOMPARE(t.chain.member(t.nodes[0])->memory_tiers, 16u);
    QCOMPARE(t.chain.member(t.nodes[1])->memory_tiers, 0u);
    QVERIFY(t.chain.is_active(t.nodes[0]));
    QCOMPARE(t.chain.refusal(t.nodes[0], Offer{16}), std::string("the member offers this already"));
    const std::size_t stranger = t.chain.add_node();
    QCOMPARE(t.chain.refusal(stranger, Offer{16}), std::string("the node is not a member"));
    QCOMPARE(t.chain.refusal(t.nodes[1], Offer{0}), std::string("the member offers this already"));
    // All members' sum is a number of bytes.
    static_assert(std::uint64_t{most_memory_tiers} * 500'000'000 <=
                  std::numeric_limits<std::uint64_t>::max() / max_members);
    QCOMPARE(t.chain.refusal(t.nodes[1], Offer{most_memory_tiers + 1}),
             std::string("the member offers more memory than nodes have"));
    QCOMPARE(t.chain.refusal(t.nodes[1], Offer{most_memory_tiers}), std::string());
  }

  void a_speed_stands_beside_the_memory() {
    Three t;
    QVERIFY(t.chain.say(t.nodes[0], Offer{16, 1500}));
    const MemberRecord* member = t.chain.member(t.nodes[0]);
    QVERIFY(member->memory_tiers == 16 && member->speed == 1500);
    QCOMPARE(t.chain.refusal(t.nodes[0], Offer{16, 1500}), std::string("the member offers this already"));
    QVERIFY(t.chain.say(t.nodes[1], Offer{16, 1}));
    QVERIFY(t.chain.say(t.nodes[2], Offer{16}));
    QCOMPARE(t.chain.member(t.nodes[2])->speed, 0u);
  }

  // Else a member could fill the blocks with them.
  void a_member_waits_sixteen_blocks_for_another_one() {
    Three t;
    const Statement first = t.chain.statement(t.nodes[0], Offer{16});
    QVERIFY(t.chain.append(ChainFixture::body_of({first})).ok());
    const std::uint64_t at = t.chain.registry().height();
    std::size_t joined = 0;
    while (t.chain.registry().height() + 1 < at + offer_pause_blocks) {
      QCOMPARE(t.chain.refusal(t.nodes[0], Offer{8}),
               std::string("the member's offer changed a few blocks ago"));
      QVERIFY(t.chain.join(t.chain.add_node()));
      ++joined;
    }
    QCOMPARE(joined, std::size_t{offer_pause_blocks - 1});
    QVERIFY(t.chain.say(t.nodes[0], Offer{8}));
    QCOMPARE(t.chain.member(t.nodes[0])->memory_tiers, 8u);
    // Nobody can show the first one again.
    QVERIFY(!t.chain.refusal(ChainFixture::body_of({first})).empty());
  }

  void it_is_in_the_root_and_in_the_file_data() {
    QTest::addColumn<Offer>("first");
    QTest::addColumn<Offer>("second");
    QTest::newRow("memory") << Offer{3} << Offer{4};
    QTest::newRow("speed") << Offer{3, 70'000} << Offer{3, 70'001};
  }
  void it_is_in_the_root_and_in_the_file() {
    QFETCH(Offer, first);
    QFETCH(Offer, second);
    Three offers, other;
    QVERIFY(offers.chain.say(offers.nodes[1], first));
    QVERIFY(other.chain.say(other.nodes[1], second));
    QVERIFY(offers.chain.registry().root() != other.chain.registry().root());
    const Bytes bytes = offers.chain.registry().encode();
    const auto read = Registry::decode(bytes);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    const MemberRecord& member = *offers.chain.member(offers.nodes[1]);
    QVERIFY(*(*read)->find(member.number) == member);
    QVERIFY((*read)->encode() == bytes);
  }
};

NS_TEST(TestChainRegistryOffers)
#include "test_registry_offers.moc"
