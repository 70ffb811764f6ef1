// A member gives up its rows for others: it is dormant until it has them, and then it counts for these only.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::chain::testing;

namespace {

RowSet row(std::uint32_t number) {
  return RowSet::of({number});
}

// Three rows: founders 0 and 1 hold the first, 2 and 3 the second, nobody the third.
struct Rows {
  ChainFixture chain{small_rules(VotersMode::Invited, 3)};
  std::vector<std::size_t> founders = chain.add_nodes(4);

  Rows() {
    for (std::size_t i = 0; i < founders.size(); ++i) chain.set_rows(founders[i], row(i < 2 ? 0 : 1));
    if (!chain.begin(founders).ok()) qFatal("no chain");
  }
  const MemberRecord& member(std::size_t founder) const { return *chain.member(founders[founder]); }
  bool says(std::size_t founder, Move move) { return chain.say(founders[founder], std::move(move)); }
  std::string refusal(std::size_t founder, Move move) const {
    return chain.refusal(founders[founder], std::move(move));
  }
};

}  // namespace

class TestChainRegistryMoves : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_member_that_moves_is_dormant_until_it_is_back();
  void only_rows_of_the_model_and_other_ones();
  void the_last_active_voter_stays();
  void a_dormant_member_may_move_too();
  void an_older_statement_does_not_hold_after_a_move();
  void it_is_in_the_root_and_in_the_file();
  void a_registration_says_who_chose();
};

void TestChainRegistryMoves::a_member_that_moves_is_dormant_until_it_is_back() {
  Rows v;
  QVERIFY(!v.member(1).is_moving());
  QVERIFY(v.says(1, Move{row(2), true}));
  QVERIFY(v.member(1).is_moving() && v.member(1).presence == Presence::Dormant);
  QVERIFY(v.member(1).rows == row(2) && v.member(1).follows_plan);
  QCOMPARE(v.member(1).moved_height, v.chain.registry().height());
  QVERIFY(!v.chain.committee()->position(v.member(1).number));
  // Nothing of it is in the round: its work was for rows that it gave up.
  BlockBody body;
  body.close = v.chain.close({{v.founders[0]}, {v.founders[1]}, {v.founders[2]}});
  const auto contributors_of_first = [&] {
    if (!v.chain.append(body).ok()) return std::vector<std::uint32_t>{9999};
    return v.chain.registry().closed()->contributors.at(0);
  };
  QVERIFY((contributors_of_first() == std::vector<std::uint32_t>{v.member(0).number}));
  BlockBody result;
  result.result = v.chain.result();
  QVERIFY(v.chain.append(result).ok());
  QVERIFY(v.chain.say(v.founders[1], Back{}));
  QVERIFY(!v.member(1).is_moving() && v.member(1).presence == Presence::Active);
  QVERIFY(v.chain.committee()->position(v.member(1).number));
  // Away again is no move.
  QVERIFY(v.chain.say(v.founders[1], Away{}));
  QVERIFY(!v.member(1).is_moving() && v.member(1).moved_height != 0);
}

void TestChainRegistryMoves::only_rows_of_the_model_and_other_ones() {
  Rows v;
  QCOMPARE(v.refusal(0, Move{row(3), true}),
           std::string("the node wants to hold a row that the model does not have"));
  QCOMPARE(v.refusal(0, Move{row(0), false}), std::string("the member holds these rows already"));
  QCOMPARE(v.refusal(0, Move{row(0), true}), std::string());  // its owner no longer chooses
  QCOMPARE(v.refusal(0, Move{row(1), false}), std::string());
  ChainFixture whole(small_rules(VotersMode::Invited, 1));
  const auto founders = whole.add_nodes(2);
  QVERIFY(whole.begin(founders).ok());
  QCOMPARE(whole.refusal(founders[0], Move{row(0), true}),
           std::string("in this network each member holds the whole model"));
  const std::size_t stranger = v.chain.add_node();
  QCOMPARE(v.chain.refusal(stranger, Move{row(1), true}), std::string("the node is not a member"));
}

void TestChainRegistryMoves::the_last_active_voter_stays() {
  Rows v;
  for (const std::size_t founder : {1u, 2u}) QVERIFY(v.says(founder, Move{row(2), true}));
  // Two of four are half: the network is not restricted, so the third may go, too.
  QVERIFY(v.chain.say(v.founders[3], Away{}));
  QVERIFY(!v.refusal(0, Move{row(2), true}).empty());
}

void TestChainRegistryMoves::a_dormant_member_may_move_too() {
  Rows v;
  QVERIFY(v.chain.say(v.founders[3], Away{}));
  QVERIFY(v.says(3, Move{row(0), false}));
  QVERIFY(v.member(3).is_moving() && v.member(3).rows == row(0));
  QVERIFY(v.chain.say(v.founders[3], Back{}));
  QVERIFY(v.chain.is_active(v.founders[3]));
}

void TestChainRegistryMoves::an_older_statement_does_not_hold_after_a_move() {
  Rows v;
  const Statement move = v.chain.statement(v.founders[1], Move{row(2), true});
  const Statement other = v.chain.statement(v.founders[1], Move{row(1), true});
  QVERIFY(v.chain.append(ChainFixture::body_of({move})).ok());
  QVERIFY(v.chain.say(v.founders[1], Back{}));
  for (const Statement& old : {move, other})
    QCOMPARE(v.chain.refusal(ChainFixture::body_of({old})),
             std::string("the member's presence changed since the statement"));
}

void TestChainRegistryMoves::it_is_in_the_root_and_in_the_file() {
  Rows moved, stayed;
  QVERIFY(moved.says(1, Move{row(2), true}));
  QVERIFY(stayed.chain.say(stayed.founders[1], Away{}));
  QVERIFY(moved.chain.registry().root() != stayed.chain.registry().root());
  const Bytes bytes = moved.chain.registry().encode();
  const auto read = Registry::decode(bytes);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QVERIFY((*read)->root() == moved.chain.registry().root());
  QVERIFY(*(*read)->find(moved.member(1).number) == moved.member(1));
  QVERIFY((*read)->encode() == bytes);
}

void TestChainRegistryMoves::a_registration_says_who_chose() {
  Rows v;
  const std::size_t node = v.chain.add_node();
  v.chain.set_rows(node, row(2));
  Register by_plan = v.chain.registration(node);
  by_plan.follows_plan = true;
  QVERIFY(v.chain.append(ChainFixture::body_of({v.chain.statement(node, by_plan)})).ok());
  QVERIFY(v.chain.member(node)->follows_plan && !v.member(0).follows_plan);
  QCOMPARE(v.chain.member(node)->moved_height, 0u);
}

NS_TEST(TestChainRegistryMoves)
#include "test_registry_moves.moc"
