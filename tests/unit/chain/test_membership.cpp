// A node's statements about the rows that it holds: when it registers, moves and comes back.
#include <QtTest>

#include "core/chain/membership.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::chain::testing;

namespace {

RowSet row(std::uint32_t number) {
  return RowSet::of({number});
}

// Three founders hold the first of two rows; a node beside them may join.
struct Joining {
  ChainFixture chain;
  std::vector<std::size_t> founders = chain.add_nodes(3);
  std::size_t other = chain.add_node();

  explicit Joining(const ChainRules& rules = small_rules(VotersMode::Invited, 2)) : chain(rules) {
    for (const std::size_t founder : founders) chain.set_rows(founder, row(0));
    if (!chain.begin(founders).ok()) qFatal("no chain");
  }
  // held: by its model, with its state.
  OwnMembership of(std::size_t node, std::uint32_t held, bool follows_plan) const {
    OwnMembership membership(chain.rules(), chain.key(node), chain.registration(node).delegation, Hash256{1},
                             std::nullopt, 512, row(held), follows_plan);
    membership.ready(true);
    return membership;
  }
  ChainTip tip() const {
    return {chain.blocks().back(),
            chain.registry_ptr(),
            chain.committee(),
            chain.registry().opening(chain.hash()),
            {}};
  }
  bool take(const std::optional<Statement>& statement) {
    return statement && chain.append(ChainFixture::body_of({*statement})).ok();
  }
};

HeldVoucher held_from(const Joining& j, std::size_t issuer) {
  HeldVoucher held;
  held.secret = Hash256{static_cast<std::uint8_t>(issuer + 1), 7};
  held.voucher.key = crypto::KeyPair::from_seed(held.secret).public_key();
  held.voucher.serial = 1;
  held.voucher.expires_ms = 2 * FixtureNodes::begin_ms;
  sign_voucher(held.voucher, j.chain.key(issuer), j.chain.rules().network);
  return held;
}

template <class What>
const What* said(const std::optional<Statement>& statement) {
  return statement ? std::get_if<What>(&statement->what) : nullptr;
}

}  // namespace

class TestMembership : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_that_follows_the_plan_registers_once_it_holds_its_part() {
    Joining j;
    OwnMembership waits = j.of(j.other, 0, true);
    QVERIFY(!waits.missing(j.tip()));  // it does not know its part yet
    waits.want({row(1)});
    QVERIFY(!waits.missing(j.tip()));  // and does not hold it yet
    OwnMembership holds = j.of(j.other, 1, true);
    holds.want({row(1)});
    const auto statement = holds.missing(j.tip());
    const auto* joins = said<Register>(statement);
    QVERIFY(joins != nullptr && joins->rows == row(1) && joins->follows_plan);
    // An owner's choice needs no plan.
    const auto chosen = j.of(j.other, 0, false).missing(j.tip());
    QVERIFY(said<Register>(chosen) != nullptr && !said<Register>(chosen)->follows_plan);
  }

  void it_moves_when_it_is_told_and_comes_back_with_the_part() {
    Joining j;
    const std::size_t node = j.founders[0];
    OwnMembership before = j.of(node, 0, true);
    before.want({row(1)});
    const auto statement = before.missing(j.tip());
    const auto* moves = said<Move>(statement);
    QVERIFY(moves != nullptr && moves->rows == row(1) && moves->follows_plan);
    QVERIFY(before.missing(j.tip()) == statement);  // the same one, not a new one at each look
    QVERIFY(j.take(statement));
    QVERIFY(!j.chain.is_active(node));
    // Its model is still of the former part: it is not back.
    before.want({});
    QVERIFY(said<Back>(before.missing(j.tip())) == nullptr);
    OwnMembership after = j.of(node, 1, true);
    after.ready(false);
    QVERIFY(said<Back>(after.missing(j.tip())) == nullptr);
    after.ready(true);
    const auto back = after.missing(j.tip());
    QVERIFY(said<Back>(back) != nullptr);
    QVERIFY(j.take(back) && j.chain.is_active(node));
    QVERIFY(said<Move>(after.missing(j.tip())) == nullptr);
  }

  void a_node_whose_owner_chose_other_rows_moves_by_itself() {
    Joining j;
    OwnMembership chosen = j.of(j.founders[0], 1, false);
    const auto statement = chosen.missing(j.tip());
    const auto* moves = said<Move>(statement);
    QVERIFY(moves != nullptr && moves->rows == row(1) && !moves->follows_plan);
    QVERIFY(said<Move>(j.of(j.founders[1], 0, false).missing(j.tip())) == nullptr);  // it has them
    // A node that its owner takes away says that, and does not move.
    OwnMembership leaving = j.of(j.founders[2], 1, false);
    leaving.want_active(false);
    QVERIFY(said<Away>(leaving.missing(j.tip())) != nullptr);
  }

  void a_member_says_how_much_memory_it_offers() {
    Joining j;
    OwnMembership member = j.of(j.founders[0], 0, false);
    const auto chain = member.missing(j.tip());
    QVERIFY(said<Commit>(chain) != nullptr && j.take(chain));
    QVERIFY(!member.missing(j.tip()));  // it does not know its memory yet
    member.want({{}, 12});
    const auto first = member.missing(j.tip());
    QVERIFY(said<Offer>(first) != nullptr && said<Offer>(first)->memory_tiers == 12);
    QVERIFY(member.missing(j.tip()) == first);
    member.want({{}, 13});  // before a block has it
    const auto second = member.missing(j.tip());
    QVERIFY(said<Offer>(second) != nullptr && said<Offer>(second)->memory_tiers == 13);
    QVERIFY(j.take(second));
    QVERIFY(!member.missing(j.tip()));
    member.want({{}, 16});
    QVERIFY(!member.missing(j.tip()));  // not yet again
    for (std::uint64_t block = 0; block < offer_pause_blocks; ++block)
      QVERIFY(j.chain.join(j.chain.add_node()));
    member.want({{}, 14});
    QVERIFY(!member.missing(j.tip()));  // within a tenth
    member.want({{}, 16});
    const auto third = member.missing(j.tip());
    QVERIFY(said<Offer>(third) != nullptr && said<Offer>(third)->memory_tiers == 16);
  }

  // Less than a tenth, but too little for a size.
  void a_member_says_that_it_lacks_room_for_a_size() {
    ChainRules rules = small_rules(VotersMode::Invited, 2);
    rules.sizes = {{20, 20}};
    Joining j(rules);
    OwnMembership member = j.of(j.founders[0], 0, false);
    QVERIFY(j.take(member.missing(j.tip())));  // its beacon chain
    member.want({{}, 20});
    QVERIFY(j.take(member.missing(j.tip())));
    for (std::uint64_t block = 0; block < offer_pause_blocks; ++block)
      QVERIFY(j.chain.join(j.chain.add_node()));
    member.want({{}, 21});
    QVERIFY(!member.missing(j.tip()));
    member.want({{}, 19});
    const auto less = member.missing(j.tip());
    QVERIFY(said<Offer>(less) != nullptr && said<Offer>(less)->memory_tiers == 19 && j.take(less));
    for (std::uint64_t block = 0; block < offer_pause_blocks; ++block)
      QVERIFY(j.chain.join(j.chain.add_node()));
    member.want({{}, 0});  // the owner's limit is below 500 MB
    const auto nothing = member.missing(j.tip());
    QVERIFY(said<Offer>(nothing) != nullptr && said<Offer>(nothing)->memory_tiers == 0);
  }

  void a_member_says_how_fast_it_is() {
    Joining j;
    OwnMembership member = j.of(j.founders[0], 0, false);
    QVERIFY(j.take(member.missing(j.tip())));  // its beacon chain
    member.want({{}, 12, 1000});
    const auto first = member.missing(j.tip());
    QVERIFY(said<Offer>(first) != nullptr && *said<Offer>(first) == (Offer{12, 1000}) && j.take(first));
    for (std::uint64_t block = 0; block < offer_pause_blocks; ++block)
      QVERIFY(j.chain.join(j.chain.add_node()));
    member.want({{}, 12, 1250});
    QVERIFY(!member.missing(j.tip()));  // within a quarter
    member.want({{}, 12, 0});
    QVERIFY(!member.missing(j.tip()));  // not measured since it started
    member.want({{}, 16, 0});
    const auto more_memory = member.missing(j.tip());
    QVERIFY(said<Offer>(more_memory) != nullptr && *said<Offer>(more_memory) == (Offer{16, 1000}));
    member.want({{}, 12, 1251});
    const auto faster = member.missing(j.tip());
    QVERIFY(said<Offer>(faster) != nullptr && *said<Offer>(faster) == (Offer{12, 1251}));
  }

  void a_voucher_that_can_not_be_used_gives_way_to_one_that_can() {
    Joining j;
    const std::size_t nobody = j.chain.add_node();
    OwnMembership candidate = j.of(j.other, 0, false);
    QVERIFY(j.take(candidate.missing(j.tip())));
    candidate.take_voucher(held_from(j, nobody), j.tip());
    QVERIFY(!candidate.missing(j.tip()));
    const HeldVoucher first = held_from(j, j.founders[0]);
    candidate.take_voucher(first, j.tip());
    candidate.take_voucher(held_from(j, j.founders[1]), j.tip());
    const auto statement = candidate.missing(j.tip());
    QVERIFY(said<Vouch>(statement) != nullptr && said<Vouch>(statement)->voucher == first.voucher);
    QVERIFY(j.take(statement) && j.chain.wallet(j.other)->vouched);
  }

  // Others may count on it as a holder, or take it for a member that is slow.
  void a_candidate_says_that_it_goes_and_comes_back() {
    Joining j;
    OwnMembership candidate = j.of(j.other, 0, false);
    QVERIFY(j.take(candidate.missing(j.tip())) && j.chain.is_active(j.other));
    candidate.want_active(false);
    const auto away = candidate.missing(j.tip());
    QVERIFY(said<Away>(away) != nullptr);
    QVERIFY(j.take(away) && !j.chain.is_active(j.other));
    QVERIFY(!candidate.missing(j.tip()));
    candidate.want_active(true);
    const auto back = candidate.missing(j.tip());
    QVERIFY(said<Back>(back) != nullptr && j.take(back) && j.chain.is_active(j.other));
  }
};

NS_TEST(TestMembership)
#include "test_membership.moc"
