// Moves between parts of the model: holes first, then parts with one owner, then parts with few holders; and nobody moves
// where that would open another hole, or make no difference.
#include <QtTest>

#include <limits>
#include <map>
#include <set>

#include "core/base/rng.h"
#include "core/plan/holder_speeds.h"
#include "core/plan/part_moves.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::plan;  // NOLINT

namespace {

Hash256 id(std::uint32_t number) {
  Hash256 node{};
  node[0] = static_cast<std::uint8_t>(number);
  node[1] = static_cast<std::uint8_t>(number >> 8);
  return node;
}

PartHolder holder(std::uint32_t number, std::uint32_t part, std::uint32_t wallet) {
  return {id(number), wallet, part, HolderState::Active, true};
}

// So many holders of each part, each with a wallet of its own.
std::vector<PartHolder> spread(const std::vector<std::size_t>& counts) {
  std::vector<PartHolder> holders;
  for (std::uint32_t part = 0; part < counts.size(); ++part)
    for (std::size_t i = 0; i < counts[part]; ++i) {
      const auto number = static_cast<std::uint32_t>(holders.size());
      holders.push_back(holder(number, part, number));
    }
  return holders;
}

// The holders after all first choices have moved and arrived.
std::vector<PartHolder> moved(std::vector<PartHolder> holders, const std::vector<PartMove>& moves) {
  for (const PartMove& move : moves)
    for (PartHolder& one : holders)
      if (one.node == move.order.front()) one.part = move.to;
  return holders;
}

std::vector<std::size_t> count(std::uint32_t parts, const std::vector<PartHolder>& holders) {
  std::vector<std::size_t> counts(parts);
  for (const PartHolder& one : holders) ++counts[one.part];
  return counts;
}

// By part: whether nodes can get it.
std::vector<ModelPart> parts_of(std::initializer_list<bool> can_get) {
  std::vector<ModelPart> parts;
  for (const bool can : can_get) parts.push_back({can, 1});
  return parts;
}

std::vector<PartMove> moves_of(std::uint32_t parts, const std::vector<PartHolder>& holders) {
  return plan_part_moves(std::vector<ModelPart>(parts), holders, id(77));
}

}  // namespace

class TestPlanPartMoves : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_part_without_a_holder_gets_one_data();
  void a_part_without_a_holder_gets_one();
  void the_last_holder_of_a_part_stays();
  void a_part_of_one_owner_gets_another();
  void nodes_even_out_when_that_makes_a_difference();
  void a_part_that_nobody_can_get_is_left();
  void a_node_on_its_way_counts();
  void a_node_asleep_fills_no_hole_and_is_expected_back();
  void owners_choices_are_left_alone();
  void an_owner_with_several_nodes_in_a_part_gives_first();
  void the_lot_decides_among_equals();
  void slow_parts_get_the_holder_that_helps_most();
  void a_fast_holder_is_not_one_too_many();
  void parts_with_little_work_need_less_speed();
  void any_network_comes_to_rest_without_new_holes();
  void unequal_homes_come_near_an_even_cut();
  void a_newcomer_takes_the_part_that_needs_it();
};

void TestPlanPartMoves::a_part_without_a_holder_gets_one_data() {
  QTest::addColumn<QList<int>>("counts");
  QTest::addColumn<int>("moves");
  QTest::newRow("three on one") << QList<int>{3, 0, 0} << 2;
  QTest::newRow("two on one") << QList<int>{2, 0, 1} << 1;
  QTest::newRow("many") << QList<int>{9, 0, 1, 0} << 5;
}

void TestPlanPartMoves::a_part_without_a_holder_gets_one() {
  QFETCH(QList<int>, counts);
  QFETCH(int, moves);
  const std::vector<PartHolder> holders = spread({counts.begin(), counts.end()});
  const auto parts = static_cast<std::uint32_t>(counts.size());
  const std::vector<PartMove> all = moves_of(parts, holders);
  QCOMPARE(all.size(), static_cast<std::size_t>(moves));
  QCOMPARE(all.front().reason, MoveReason::NoHolder);
  for (const std::size_t left : count(parts, moved(holders, all))) QVERIFY(left >= 1);
}

void TestPlanPartMoves::the_last_holder_of_a_part_stays() {
  QVERIFY(moves_of(3, spread({1, 1, 0})).empty());
  QVERIFY(moves_of(2, spread({1, 0})).empty());
  QVERIFY(moves_of(2, spread({0, 0})).empty());
}

void TestPlanPartMoves::a_part_of_one_owner_gets_another() {
  std::vector<PartHolder> holders = spread({3, 0});
  holders.push_back(holder(10, 1, 50));
  holders.push_back(holder(11, 1, 50));
  const auto moves = moves_of(2, holders);
  QCOMPARE(moves.size(), std::size_t{1});
  QVERIFY(moves[0].from == 0 && moves[0].to == 1 && moves[0].reason == MoveReason::OneWallet);
  QCOMPARE(moves[0].order.size(), std::size_t{3});
  // Not from a part that would have one owner then.
  holders.erase(holders.begin());
  QVERIFY(moves_of(2, holders).empty());
  // Not a node of that same owner.
  holders.push_back(holder(12, 0, 50));
  const auto others = moves_of(2, holders);
  QCOMPARE(others.size(), std::size_t{1});
  QVERIFY(std::count(others[0].order.begin(), others[0].order.end(), id(12)) == 0);
}

void TestPlanPartMoves::nodes_even_out_when_that_makes_a_difference() {
  QVERIFY(moves_of(2, spread({3, 2})).empty());
  const auto one = moves_of(2, spread({5, 3}));
  QCOMPARE(one.size(), std::size_t{1});
  QCOMPARE(one[0].reason, MoveReason::SlowPart);
  QVERIFY(moves_of(2, spread({24, 20})).empty());  // a twentieth faster
  // Of many, few at once: the others train meanwhile.
  auto many = spread({40, 10});
  QCOMPARE(moves_of(2, many).size(), std::size_t{7});
  for (int turn = 0; turn < 3; ++turn) many = moved(many, moves_of(2, many));
  const auto after = count(2, many);
  QVERIFY2(after[1] >= 20 && after[0] >= after[1], qPrintable(QString::number(after[1])));
}

void TestPlanPartMoves::a_part_that_nobody_can_get_is_left() {
  QVERIFY(plan_part_moves(parts_of({true, false}), spread({5, 0}), id(77)).empty());
  QVERIFY(plan_part_moves(parts_of({false, false}), spread({5, 0}), id(77)).empty());
  // Other parts are not forgotten over it.
  const auto moves = plan_part_moves(parts_of({true, false, true}), spread({5, 0, 1}), id(77));
  QVERIFY(!moves.empty() && moves[0].to == 2);
}

void TestPlanPartMoves::a_node_on_its_way_counts() {
  std::vector<PartHolder> holders = spread({3, 0});
  holders[2].part = 1;
  holders[2].state = HolderState::Arriving;
  QVERIFY(moves_of(2, holders).empty());
  // Others even out when it has arrived.
  holders = spread({9, 3});
  holders.back().state = HolderState::Arriving;
  QVERIFY(moves_of(2, holders).empty());
}

void TestPlanPartMoves::a_node_asleep_fills_no_hole_and_is_expected_back() {
  std::vector<PartHolder> holders = spread({4, 1});
  holders.back().state = HolderState::Asleep;
  const auto hole = moves_of(2, holders);
  QVERIFY(!hole.empty() && hole[0].reason == MoveReason::NoHolder);
  // Two of four sleep: when they are back, the parts are even.
  holders = spread({4, 4});
  holders[6].state = holders[7].state = HolderState::Asleep;
  QVERIFY(moves_of(2, holders).empty());
  // Nobody that sleeps is asked to move.
  holders = spread({4, 0});
  holders[0].state = HolderState::Asleep;
  for (const PartMove& move : moves_of(2, holders))
    QVERIFY(std::count(move.order.begin(), move.order.end(), id(0)) == 0);
}

void TestPlanPartMoves::owners_choices_are_left_alone() {
  std::vector<PartHolder> holders = spread({3, 0});
  for (PartHolder& one : holders) one.movable = false;
  QVERIFY(moves_of(2, holders).empty());
  holders[1].movable = true;
  const auto moves = moves_of(2, holders);
  QCOMPARE(moves.size(), std::size_t{1});
  QVERIFY(moves[0].order == std::vector<Hash256>{id(1)});
}

void TestPlanPartMoves::an_owner_with_several_nodes_in_a_part_gives_first() {
  std::vector<PartHolder> holders = spread({4, 0});
  holders.push_back(holder(10, 0, 0));  // a second one of the first owner
  const auto order = moves_of(2, holders)[0].order;
  QVERIFY((std::set<Hash256>{order[0], order[1]} == std::set<Hash256>{id(0), id(10)}));
}

void TestPlanPartMoves::the_lot_decides_among_equals() {
  const std::vector<PartHolder> holders = spread({6, 0});
  std::set<Hash256> first;
  for (std::uint32_t lot = 0; lot < 60; ++lot) {
    const auto moves = plan_part_moves(parts_of({true, true}), holders, id(lot));
    first.insert(moves[0].order.front());
  }
  QCOMPARE(first.size(), std::size_t{6});
}

void TestPlanPartMoves::slow_parts_get_the_holder_that_helps_most() {
  // 8, 4, 2, 2 beside 2, 2: with 4 more both have 8 or more.
  auto holders = spread({4, 2});
  const std::uint32_t speeds[] = {8, 4, 2, 2, 2, 2};
  for (std::size_t i = 0; i < holders.size(); ++i) holders[i].speed = speeds[i];
  const auto moves = moves_of(2, holders);
  QVERIFY(!moves.empty());
  QCOMPARE(moves[0].reason, MoveReason::SlowPart);
  QVERIFY(moves[0].from == 0 && moves[0].to == 1 && moves[0].order.front() == id(1));
  // Not the one that would make the other part the slow one.
  QVERIFY(std::count(moves[0].order.begin(), moves[0].order.end(), id(0)) == 0);
}

void TestPlanPartMoves::a_fast_holder_is_not_one_too_many() {
  // By their number the first part has too many, by their speed none.
  auto holders = spread({6, 2});
  for (std::size_t i = 0; i < 6; ++i) holders[i].speed = 100;
  for (std::size_t i = 6; i < 8; ++i) holders[i].speed = 300;
  QVERIFY(moves_of(2, holders).empty());
  // One that says nothing counts as the others.
  holders = spread({6, 2});
  holders[0].speed = 5;
  QCOMPARE(moves_of(2, holders).size(), moves_of(2, spread({6, 2})).size());
}

void TestPlanPartMoves::parts_with_little_work_need_less_speed() {
  const std::vector<ModelPart> unequal{{true, 3}, {true, 1}};
  QVERIFY(plan_part_moves(unequal, spread({6, 2}), id(77)).empty());
  const auto holders = spread({4, 4});
  QCOMPARE(count(2, moved(holders, plan_part_moves(unequal, holders, id(77)))),
           (std::vector<std::size_t>{6, 2}));
  QCOMPARE(choose_part(unequal, spread({4, 2}), id(200)), 0u);
  QCOMPARE(choose_part(unequal, spread({7, 2}), id(200)), 1u);
}

// Speeds of a hundredfold range, parts of unequal work. Compared with the speed of all, divided by the work of all: no plan is faster.
void TestPlanPartMoves::unequal_homes_come_near_an_even_cut() {
  double worst_before = 1, worst_after = 1;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const auto count = static_cast<std::uint32_t>(2 + rng.below(4));
    std::vector<ModelPart> parts;
    for (std::uint32_t part = 0; part < count; ++part)
      parts.push_back({true, 1 + static_cast<double>(rng.below(100)) / 100});
    std::vector<PartHolder> holders;
    for (std::uint32_t number = 0; number < 12 * count; ++number) {
      holders.push_back(holder(number, static_cast<std::uint32_t>(rng.below(count)), number));
      holders.back().speed = static_cast<std::uint32_t>(100 << rng.below(7));
    }
    std::vector<SaidSpeed> said;
    for (const PartHolder& one : holders) said.push_back({one.speed, one.wallet});
    const std::vector<double> speeds = counted_speeds(said);
    const auto part_of_bound = [&] {
      std::vector<double> of_part(count);
      double all = 0, work = 0, slowest = std::numeric_limits<double>::max();
      for (std::size_t i = 0; i < holders.size(); ++i) of_part[holders[i].part] += speeds[i];
      for (std::uint32_t part = 0; part < count; ++part) {
        all += of_part[part];
        work += parts[part].work;
        slowest = std::min(slowest, of_part[part] / parts[part].work);
      }
      return slowest / (all / work);
    };
    worst_before = std::min(worst_before, part_of_bound());
    for (int turn = 0;; ++turn) {
      QVERIFY2(turn < 50, qPrintable(QString("seed %1 does not come to rest").arg(seed)));
      const auto moves = plan_part_moves(parts, holders, id(seed));
      if (moves.empty()) break;
      holders = moved(std::move(holders), moves);
    }
    worst_after = std::min(worst_after, part_of_bound());
  }
  qInfo() << "of the fastest possible: at least" << worst_before << "before, and" << worst_after
          << "after the moves";
  QVERIFY(worst_before < 0.5);
  QVERIFY(worst_after > 0.8);
}

void TestPlanPartMoves::any_network_comes_to_rest_without_new_holes() {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto parts = static_cast<std::uint32_t>(1 + rng.below(8));
    std::vector<PartHolder> holders;
    const std::uint64_t nodes = rng.below(60);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      PartHolder one =
          holder(i, static_cast<std::uint32_t>(rng.below(parts)), static_cast<std::uint32_t>(rng.below(20)));
      one.movable = rng.below(5) > 0;
      holders.push_back(one);
    }
    int turns = 0;
    for (auto moves = moves_of(parts, holders); !moves.empty(); moves = moves_of(parts, holders)) {
      const auto before = count(parts, holders);
      holders = moved(holders, moves);
      const auto after = count(parts, holders);
      for (std::uint32_t part = 0; part < parts; ++part)
        QVERIFY2(before[part] == 0 || after[part] > 0, qPrintable(QString("seed %1").arg(seed)));
      QVERIFY2(++turns < 20, qPrintable(QString("seed %1 does not come to rest").arg(seed)));
    }
  }
}

void TestPlanPartMoves::a_newcomer_takes_the_part_that_needs_it() {
  QCOMPARE(choose_part(parts_of({true, true, true}), spread({2, 0, 2}), id(200)), 1u);
  QCOMPARE(choose_part(parts_of({true, true, true}), spread({2, 3, 1}), id(200)), 2u);
  QCOMPARE(choose_part(parts_of({true, true, true}), spread({5, 4, 6}), id(200)), 1u);
  QCOMPARE(choose_part(parts_of({true, false, true}), spread({5, 4, 6}), id(200)), 0u);
  QCOMPARE(choose_part(parts_of({false, false, false}), spread({1, 1, 1}), id(200)), 200u % 3);
  // Those that come together to equal parts spread.
  std::map<std::uint32_t, int> taken;
  for (std::uint32_t number = 0; number < 30; ++number)
    ++taken[choose_part(parts_of({true, true, true}), spread({2, 2, 2}), id(number))];
  for (const auto& [part, nodes] : taken) QCOMPARE(nodes, 10);
}

NS_TEST(TestPlanPartMoves)
#include "test_part_moves.moc"
