// The size of the model in the registry: when members' memory asks for another one, and the round that makes it.
#include <QtTest>

#include "core/chain/size_demand.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

namespace {

constexpr std::uint32_t small = 2, middle = 8, large = 16;

// Two larger sizes: 8 tiers of each member and 24 of all, 16 of each and 48 of all.
ChainRules growing_rules(std::uint32_t rows = 2) {
  ChainRules rules = small_rules(VotersMode::Invited, rows);
  rules.sizes = {{middle, 24}, {large, 48}};
  return rules;
}

BlockBody with(ResultSection result) {
  BlockBody body;
  body.result = std::move(result);
  return body;
}

struct Growing : ChainFixture {
  explicit Growing(ChainRules rules = growing_rules()) : ChainFixture(std::move(rules)) {
    nodes = add_nodes(4);
    if (!begin(nodes).ok()) qFatal("no chain");
  }
  // In one block, long after the last offer of any member.
  void offer(const std::vector<std::uint32_t>& tiers) {
    const std::uint64_t from = registry().height() + offer_pause_blocks;
    while (registry().height() < from)
      if (!round_of(nodes)) qFatal("no round");
    std::vector<Statement> offers;
    for (std::size_t i = 0; i < tiers.size(); ++i)
      if (member(nodes[i])->memory_tiers != tiers[i]) offers.push_back(statement(nodes[i], Offer{tiers[i]}));
    if (!append(body_of(offers)).ok()) qFatal("no offers");
  }
  bool rounds(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (!round_of(nodes)) return false;
    return true;
  }
  ResultSection resized(bool carried = false) const {
    ResultSection result;
    result.round = registry().round() + 1;
    for (const std::uint32_t number : rules().rows_of(result.round)) {
      RowResult row = carried_row(number);
      row.carried = carried;
      if (!carried) row.anchor.fill(static_cast<std::uint8_t>(100 + number));
      result.rows.push_back(row);
    }
    return result;
  }
  void grow_to_middle() {
    offer({middle, middle, middle, 12});
    if (!rounds(results_to_change_size) || !append(with(resized())).ok()) qFatal("no growth");
  }
  std::vector<std::size_t> nodes;
};

}  // namespace

class TestChainRegistrySize : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_network_without_sizes_stays_as_it_is() {
    Growing chain(small_rules());
    chain.offer({large, large, large, large});
    QVERIFY(chain.rounds(2 * results_to_change_size));
    QVERIFY(chain.registry().size() == SizeRecord{});
  }

  void four_results_in_a_row_ask_for_a_larger_size() {
    Growing chain;
    chain.offer({middle, middle, middle, 12});
    QVERIFY(chain.rounds(results_to_change_size - 1));
    QVERIFY(!chain.registry().size().changing);
    QCOMPARE(chain.registry().size().next, 1u);
    QVERIFY(!chain.registry().closed());
    QVERIFY(chain.rounds(1));
    // The next round is closed already, without contributions.
    QVERIFY(chain.registry().size().changing);
    QCOMPARE(chain.registry().size().size, 0u);
    QVERIFY(chain.registry().closed() && chain.registry().closed()->contributions.empty());
    BlockBody closing;
    closing.close = chain.close({{chain.nodes[0]}});
    QCOMPARE(chain.refusal(closing), std::string("the round is closed already"));

    const std::uint64_t round = chain.registry().round();
    QVERIFY(chain.append(with(chain.resized())).ok());
    QVERIFY((chain.registry().size() == SizeRecord{1, 1, 0, false}));
    QCOMPARE(chain.registry().round(), round + 1);
    QVERIFY(!chain.registry().closed());
    for (const RowRecord& row : chain.registry().rows()) {
      QVERIFY(row.anchor[5] >= 100);
      QCOMPARE(row.changed_round, round + 1);
      QCOMPARE(row.norm_bits[0], std::uint64_t{0});
    }
    // With the same memory it stays: 16 of each member are too much.
    QVERIFY(chain.rounds(2 * results_to_change_size));
    QVERIFY((chain.registry().size() == SizeRecord{1, 1, 0, false}));
  }

  void three_of_four_need_room_and_all_need_half_as_much_again() {
    Growing few;
    few.offer({large, large, small, small});
    QVERIFY(few.rounds(2 * results_to_change_size));
    QVERIFY(few.registry().size() == SizeRecord{});
    Growing three;
    three.offer({12, 12, 12, 0});  // 36 of 24
    QVERIFY(three.rounds(results_to_change_size));
    QVERIFY(three.registry().size().changing);
    Growing less;
    less.offer({12, 12, 11, 0});
    QVERIFY(less.rounds(2 * results_to_change_size));
    QVERIFY(less.registry().size() == SizeRecord{});
  }

  void an_offer_that_goes_back_starts_the_count_again() {
    Growing chain;
    chain.offer({12, 12, 12, 0});
    QVERIFY(chain.rounds(2));
    QVERIFY(chain.append(ChainFixture::body_of({chain.statement(chain.nodes[3], Offer{1})})).ok());
    QCOMPARE(chain.registry().size().results, 2u);
    QVERIFY(chain.rounds(1));
    QCOMPARE(chain.registry().size().results, 3u);
    Growing back;
    back.offer({12, 12, 12, 0});
    QVERIFY(back.rounds(results_to_change_size - 1));
    // Members come and go: one that had room is away.
    QVERIFY(back.say(back.nodes[0], Away{}));
    back.nodes.erase(back.nodes.begin());
    QVERIFY(back.rounds(1));
    QVERIFY(back.registry().size() == SizeRecord{});
  }

  // Anybody can register nodes that say they have much memory.
  void offers_of_members_without_a_vote_do_not_count() {
    Growing chain;
    chain.offer({12, 12, small, small});
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t stranger = chain.add_node();
      QVERIFY(chain.join(stranger));
      QVERIFY(chain.say(stranger, Offer{1000}));
    }
    QVERIFY(chain.rounds(2 * results_to_change_size));
    QVERIFY(chain.registry().size() == SizeRecord{});
  }

  void all_rows_change_or_none() {
    Growing chain;
    chain.offer({middle, middle, middle, 12});
    QVERIFY(chain.rounds(results_to_change_size));
    ResultSection half = chain.resized();
    half.rows[1] = carried_row(1);
    QCOMPARE(chain.refusal(with(half)), std::string("a result changes the size of some rows only"));
    ResultSection more = chain.resized();
    more.rows[0].norm_bits = 1;
    QCOMPARE(chain.refusal(with(more)), std::string("a row of another size has an anchor and nothing else"));
    ResultSection fewer = chain.resized();
    fewer.rows.pop_back();
    QCOMPARE(chain.refusal(with(fewer)), std::string("the result has other rows than the round"));

    const std::vector<RowRecord> before = chain.registry().rows();
    QVERIFY(chain.append(with(chain.resized(true))).ok());
    QVERIFY(chain.registry().rows() == before);
    QVERIFY(chain.registry().size() == SizeRecord{});
    // The network tries again.
    QVERIFY(chain.rounds(results_to_change_size));
    QVERIFY(chain.registry().size().changing);
  }

  void it_shrinks_when_the_memory_is_gone() {
    Growing chain;
    chain.grow_to_middle();
    // Two of four with room, and the needed 24 of all: it stays.
    chain.offer({middle, 12, 3, 1});
    QVERIFY(chain.rounds(2 * results_to_change_size));
    QCOMPARE(chain.registry().size().size, 1u);
    QVERIFY(!chain.registry().size().changing);
    chain.offer({12, 7, 4, 1});
    QVERIFY(chain.rounds(results_to_change_size));
    QVERIFY(chain.registry().size().changing);
    QCOMPARE(chain.registry().size().next, 0u);
    QVERIFY(chain.append(with(chain.resized())).ok());
    QVERIFY(chain.registry().size() == SizeRecord{});
  }

  void members_that_sleep_do_not_make_it_shrink() {
    Growing chain;
    chain.grow_to_middle();
    const std::size_t sleeper = chain.nodes.back();
    chain.nodes.pop_back();
    QVERIFY(chain.say(sleeper, Away{}));
    QVERIFY(chain.rounds(2 * results_to_change_size));
    QCOMPARE(chain.registry().size().size, 1u);
    QVERIFY(!chain.registry().size().changing);
  }

  void the_demand_says_what_there_is_and_what_is_needed() {
    Growing chain;
    const auto demand = [&chain] { return size_demand(chain.rules().sizes, chain.registry()); };
    QVERIFY(demand().larger.members == 4 && demand().larger.known == 0 && demand().asked == 0);
    QVERIFY(!demand().present.needs && !demand().present.is_enough());
    chain.offer({12, 12, 11, 0});
    SizeOffers larger = demand().larger;
    QVERIFY(larger.members == 4 && larger.known == 3 && larger.with_room == 3);
    QVERIFY(larger.units == 48 && larger.units_with_room == 36);
    QVERIFY(larger.tiers == 35 && larger.tiers_to_offer() == 36 && !larger.is_enough());
    chain.offer({12, 12, 12, 0});
    QVERIFY(demand().larger.is_enough() && demand().asked == 1);
    // The nodes of a wallet share its units: a second one that has room adds half of them, after its first contribution.
    const std::size_t second =
        chain.add_node_of(chain.wallet_index(chain.nodes[3]), chain.registry().round() + 1);
    QVERIFY(chain.join(second) && chain.say(second, Offer{12}) && chain.rounds(1));
    QCOMPARE(demand().larger.members, 4u);
    chain.nodes.push_back(second);
    QVERIFY(chain.rounds(1));
    larger = demand().larger;
    QVERIFY(larger.members == 5 && larger.with_room == 4 && larger.units_with_room == 42);
  }

  void the_demand_for_the_present_size_counts_sleepers() {
    Growing chain;
    chain.grow_to_middle();
    QVERIFY(chain.say(chain.nodes.back(), Away{}));
    chain.nodes.pop_back();
    const SizeDemand demand = size_demand(chain.rules().sizes, chain.registry());
    QVERIFY(demand.present.members == 4 && demand.present.tiers_to_offer() == 24);
    QVERIFY(demand.present.is_enough() && demand.asked == 1);
    QVERIFY(demand.larger.members == 3 && demand.larger.needs->member_tiers == large);
    const SizeOffers active = offers_for(SizeNeeds{12, 0}, chain.registry(), Counted::Active);
    QVERIFY(active.members == 3 && active.with_room == 0 && active.tiers == 3 * middle);
    QCOMPARE(active.tiers_to_offer(), std::uint64_t{0});
  }

  // The largest size has no larger one, and the first one needs nothing.
  void a_size_at_an_end_has_one_neighbour() {
    Growing chain;
    chain.grow_to_middle();
    chain.offer({20, 20, 20, 20});
    QVERIFY(chain.rounds(results_to_change_size) && chain.append(with(chain.resized())).ok());
    QCOMPARE(chain.registry().size().size, 2u);
    const SizeDemand demand = size_demand(chain.rules().sizes, chain.registry());
    QVERIFY(!demand.larger.needs && demand.larger.tiers_to_offer() == 0 && !demand.larger.is_enough());
    QVERIFY(demand.larger.members == 4 && demand.larger.tiers == 80);
    QVERIFY(demand.present.is_enough() && demand.asked == 2);
  }

  void it_is_in_the_root_and_in_the_file() {
    Growing chain;
    const auto check = [&chain] {
      const Bytes bytes = chain.registry().encode();
      const auto read = Registry::decode(bytes);
      QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
      QVERIFY((*read)->size() == chain.registry().size());
      QVERIFY((*read)->root() == chain.registry().root());
      QVERIFY((*read)->encode() == bytes);
    };
    chain.offer({middle, middle, middle, 12});
    check();
    const Bytes first = chain.registry().encode();
    QVERIFY(chain.rounds(1));
    check();
    QVERIFY(chain.rounds(results_to_change_size - 1));
    QVERIFY(chain.registry().size().changing);
    check();
    QVERIFY(chain.append(with(chain.resized())).ok());
    check();
    // The last 13 bytes: a size that contradicts itself.
    Bytes wrong = chain.registry().encode();
    wrong[wrong.size() - 9] ^= 2;
    QVERIFY(!Registry::decode(wrong).ok());
    Bytes cut = chain.registry().encode();
    cut.resize(cut.size() - 13);
    QVERIFY(!Registry::decode(cut).ok());
  }
};

NS_TEST(TestChainRegistrySize)
#include "test_registry_size.moc"
