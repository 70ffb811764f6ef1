// A node and its part of the model: where it begins, when it says that it moves, and which part it makes its model of.
#include <QtTest>

#include "core/runtime/part_moves.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

chain::RowSet row(std::uint32_t number) {
  return chain::RowSet::of({number});
}

// Two parts. Founders that follow the plan, of which the first `of_first` hold the first part.
struct Plan {
  ChainFixture chain{small_rules(chain::VotersMode::Invited, 2)};
  std::vector<std::size_t> founders;
  std::vector<bool> fitting{true, true};
  MonotonicTime now{std::chrono::hours(1)};
  Duration later{};

  Plan(std::size_t of_first, std::size_t count) : founders(chain.add_nodes(count)) {
    for (std::size_t i = 0; i < founders.size(); ++i) chain.set_rows(founders[i], row(i < of_first ? 0 : 1));
    if (!chain.begin(founders).ok()) qFatal("no chain");
    for (std::size_t i = 0; i < founders.size(); ++i) follow(i);
  }
  // The fixture's founders register with a choice of their own.
  void follow(std::size_t i) {
    const chain::RowSet rows = chain.member(founders[i])->rows;
    if (!chain.say(founders[i], chain::Move{rows, true}) || !chain.say(founders[i], chain::Back{}))
      qFatal("no move");
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  PartMoves::Facts facts(std::uint32_t held) const {
    const auto block = std::chrono::milliseconds(static_cast<std::int64_t>(chain.registry().time_ms()));
    return {chain.registry(),
            held,
            fitting,
            now,
            WallTime(block + std::chrono::duration_cast<std::chrono::milliseconds>(later)),
            false,
            false};
  }
  // Founders that say now that they move, by the order in which the plan names them.
  std::vector<std::size_t> movers(std::vector<PartMoves>& nodes, std::uint32_t held) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].decide(facts(held)).wanted) found.push_back(i);
    return found;
  }
};

}  // namespace

class TestPartMoves : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_newcomer_begins_with_the_part_that_needs_it() {
    Plan plan(3, 4);
    const std::size_t newcomer = plan.chain.add_node();
    PartMoves moves(plan.id(newcomer), {1, 1});
    auto decision = moves.decide(plan.facts(0));
    QVERIFY(decision.wanted == 1u && decision.model == 1u);
    // It keeps to that, whatever others do meanwhile.
    QVERIFY(plan.chain.say(plan.founders[0], chain::Leave{}) &&
            plan.chain.say(plan.founders[1], chain::Leave{}));
    decision = moves.decide(plan.facts(1));
    QVERIFY(decision.wanted == 1u && !decision.model);
    // Without the memory for that part it takes the other.
    plan.fitting = {true, false};
    PartMoves small(plan.id(newcomer), {1, 1});
    decision = small.decide(plan.facts(0));
    QVERIFY(decision.wanted == 0u && !decision.model);
  }

  void of_those_that_may_fill_a_hole_one_moves_and_then_the_next() {
    Plan plan(3, 3);
    std::vector<PartMoves> nodes;
    for (const std::size_t founder : plan.founders)
      nodes.emplace_back(plan.id(founder), std::vector<double>{1, 1});
    const std::vector<std::size_t> first = plan.movers(nodes, 0);
    QCOMPARE(first.size(), std::size_t{1});
    plan.now += PartMoves::turn;
    QCOMPARE(plan.movers(nodes, 0).size(), std::size_t{2});
    plan.now += PartMoves::turn;
    QCOMPARE(plan.movers(nodes, 0).size(), std::size_t{3});
    // One has said it: nobody else moves, unless it does not arrive.
    QVERIFY(plan.chain.say(plan.founders[first[0]], chain::Move{row(1), true}));
    std::vector<PartMoves> others;
    for (std::size_t i = 0; i < plan.founders.size(); ++i)
      if (i != first[0]) others.emplace_back(plan.id(plan.founders[i]), std::vector<double>{1, 1});
    QVERIFY(plan.movers(others, 0).empty());
    plan.later = PartMoves::arrival_patience + std::chrono::seconds(1);
    plan.now += std::chrono::seconds(11);
    QCOMPARE(plan.movers(others, 0).size(), std::size_t{1});
  }

  void a_node_without_the_memory_leaves_it_to_the_next() {
    Plan plan(3, 3);
    plan.fitting = {true, false};
    std::vector<PartMoves> nodes;
    for (const std::size_t founder : plan.founders)
      nodes.emplace_back(plan.id(founder), std::vector<double>{1, 1});
    plan.now += 10 * PartMoves::turn;
    QVERIFY(plan.movers(nodes, 0).empty());
  }

  void work_of_the_round_is_finished_first() {
    Plan plan(3, 3);
    for (const std::size_t founder : plan.founders) {
      PartMoves moves(plan.id(founder), {1, 1});
      auto facts = plan.facts(0);
      facts.contributed = true;
      const auto decision = moves.decide(facts);
      QVERIFY(!decision.wanted && decision.reason == plan::MoveReason::NoHolder);
    }
    // For more speed alone it does not throw away what it trained either.
    Plan even(4, 4);
    QVERIFY(even.chain.say(even.founders[3], chain::Move{row(1), true}) &&
            even.chain.say(even.founders[3], chain::Back{}));
    for (std::size_t i = 0; i < 3; ++i) {
      PartMoves moves(even.id(even.founders[i]), {1, 1});
      auto facts = even.facts(0);
      facts.trained = true;
      QVERIFY(!moves.decide(facts).wanted);
    }
  }

  void its_model_follows_the_registry() {
    Plan plan(3, 3);
    QVERIFY(plan.chain.say(plan.founders[0], chain::Move{row(1), true}));
    PartMoves moves(plan.id(plan.founders[0]), {1, 1});
    auto decision = moves.decide(plan.facts(0));
    QVERIFY(decision.model == 1u && !decision.wanted);
    decision = moves.decide(plan.facts(1));
    QVERIFY(!decision.model && !decision.wanted);
  }

  // A trained part whose voters are asleep is nowhere to be had, even where a candidate says that it holds the part.
  void nobody_moves_to_a_part_that_nobody_gives() {
    Plan plan(3, 5);
    QVERIFY(plan.chain.round_of(plan.founders));
    QVERIFY(plan.chain.registry().rows()[1].changed_round > 0);
    const std::size_t stranger = plan.chain.add_node();
    plan.chain.set_rows(stranger, row(1));
    QVERIFY(plan.chain.join(stranger));
    for (const std::size_t founder : {3u, 4u}) QVERIFY(plan.chain.say(plan.founders[founder], chain::Away{}));
    std::vector<PartMoves> nodes;
    for (std::size_t i = 0; i < 3; ++i)
      nodes.emplace_back(plan.id(plan.founders[i]), std::vector<double>{1, 1});
    plan.now += 10 * PartMoves::turn;
    plan.later = PartMoves::sleep_counts + std::chrono::hours(1);
    QVERIFY(plan.movers(nodes, 0).empty());
    // A newcomer that has room for that part only stays with it.
    plan.fitting = {false, true};
    PartMoves small(plan.id(plan.chain.add_node()), {1, 1});
    auto decision = small.decide(plan.facts(1));
    QVERIFY(decision.wanted == 1u && !decision.model);
    // Until there is a choice.
    plan.fitting = {true, true};
    decision = small.decide(plan.facts(1));
    QVERIFY(decision.wanted == 0u && decision.model == 0u);
  }

  void candidates_count_for_nothing() {
    Plan plan(3, 3);
    const std::size_t stranger = plan.chain.add_node();
    plan.chain.set_rows(stranger, row(1));
    QVERIFY(plan.chain.join(stranger));
    std::vector<PartMoves> nodes;
    for (const std::size_t founder : plan.founders)
      nodes.emplace_back(plan.id(founder), std::vector<double>{1, 1});
    QCOMPARE(plan.movers(nodes, 0).size(), std::size_t{1});
  }
};

NS_TEST(TestPartMoves)
#include "test_part_moves.moc"
