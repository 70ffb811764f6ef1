// The wallets that give vouchers, and the serial of each voucher.
#include <QtTest>

#include "core/chain/vouching.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

class TestChainVouching : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void vouchers_are_taken_by_the_chain();
  void a_node_without_its_memory_repeats_no_serial();
  void two_nodes_of_a_wallet_give_different_serials_data();
  void two_nodes_of_a_wallet_give_different_serials();
  void only_trusted_voters_vouch();
  void callers_through_a_relay_are_not_near();
};

namespace {

constexpr std::uint64_t later_ms = ChainFixture::begin_ms * 2;

ChainTip tip_of(const ChainFixture& chain) {
  ChainTip tip;
  tip.block = chain.blocks().back();
  tip.registry = chain.registry_ptr();
  return tip;
}

Vouching vouching_of(const ChainFixture& chain, std::size_t node) {
  Vouching vouching(chain.rules(), chain.key(node), chain.wallet_key(node).public_key(),
                    [](std::uint32_t) {});
  vouching.begin(chain.key(node).public_key(), 0);
  return vouching;
}

Register registration_with(const ChainFixture& chain, std::size_t node, const HeldVoucher& held) {
  Register what = chain.registration(node);
  what.voucher = held.voucher;
  what.voucher_signature = use_voucher(crypto::KeyPair::from_seed(held.secret), chain.key(node).public_key(),
                                       chain.wallet_key(node).public_key(), chain.rules().network);
  return what;
}

}  // namespace

void TestChainVouching::vouchers_are_taken_by_the_chain() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin({nodes[0]}).ok());
  Vouching vouching = vouching_of(chain, nodes[0]);
  const auto first = vouching.give(tip_of(chain), later_ms), second = vouching.give(tip_of(chain), later_ms);
  QVERIFY(first.ok() && second.ok());
  QVERIFY(first->voucher.serial != second->voucher.serial && first->secret != second->secret);
  QVERIFY(chain.say(nodes[1], registration_with(chain, nodes[1], *second)));
  QVERIFY(chain.wallet(nodes[1])->vouched);
  QCOMPARE(chain.refusal(nodes[2], registration_with(chain, nodes[2], *second)),
           std::string("the voucher was used before"));
  QVERIFY(chain.say(nodes[2], registration_with(chain, nodes[2], *first)));
}

// A second node of the wallet, or one whose disk was restored.
void TestChainVouching::a_node_without_its_memory_repeats_no_serial() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin({nodes[0]}).ok());
  const auto first = vouching_of(chain, nodes[0]).give(tip_of(chain), later_ms);
  QVERIFY(chain.say(nodes[1], registration_with(chain, nodes[1], *first)));
  const auto again = vouching_of(chain, nodes[0]).give(tip_of(chain), later_ms);
  QCOMPARE(again->voucher.serial, first->voucher.serial + 1);
  QVERIFY(chain.say(nodes[2], registration_with(chain, nodes[2], *again)));
}

void TestChainVouching::two_nodes_of_a_wallet_give_different_serials_data() {
  QTest::addColumn<bool>("in_order");
  QTest::newRow("in order") << true;
  QTest::newRow("the second first") << false;
}

// Neither knows of the other's voucher, which nobody has used.
void TestChainVouching::two_nodes_of_a_wallet_give_different_serials() {
  QFETCH(bool, in_order);
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  const std::size_t other = chain.add_node_of(chain.wallet_index(nodes[0]));
  QVERIFY(chain.begin({nodes[0]}).ok());
  QVERIFY(chain.join(other));
  const auto one = vouching_of(chain, nodes[0]).give(tip_of(chain), later_ms);
  const auto two = vouching_of(chain, other).give(tip_of(chain), later_ms);
  QVERIFY(one.ok() && two.ok());
  QVERIFY(one->voucher.serial != two->voucher.serial);
  QVERIFY(chain.say(nodes[1], registration_with(chain, nodes[1], in_order ? *one : *two)));
  QVERIFY(chain.say(nodes[2], registration_with(chain, nodes[2], in_order ? *two : *one)));
  QVERIFY(chain.wallet(nodes[1])->vouched && chain.wallet(nodes[2])->vouched);
}

void TestChainVouching::only_trusted_voters_vouch() {
  for (const VotersMode mode : {VotersMode::Invited, VotersMode::Open, VotersMode::Founders}) {
    ChainFixture chain(small_rules(mode));
    const auto nodes = chain.add_nodes(4);
    const std::size_t candidate = chain.add_node();
    QVERIFY(chain.begin(nodes).ok());
    QVERIFY(chain.join(candidate));
    QCOMPARE(vouching_of(chain, nodes[0]).give(tip_of(chain), later_ms).ok(), mode != VotersMode::Founders);
    const auto refused = vouching_of(chain, candidate).give(tip_of(chain), later_ms);
    QCOMPARE(refused.error().code, ErrorCode::Denied);
    if (mode != VotersMode::Open) continue;
    QVERIFY(chain.round_of(nodes));
    auto all = nodes;
    all.push_back(candidate);
    for (int round = 0; round < 3; ++round) QVERIFY(chain.round_of(all));
    QVERIFY(chain.is_voter(candidate));
    const auto untrusted = vouching_of(chain, candidate).give(tip_of(chain), later_ms);
    QVERIFY(untrusted.error().message.find("nobody vouched") != std::string::npos);
  }
}

void TestChainVouching::callers_through_a_relay_are_not_near() {
  const auto home = platform::IpAddress::v4(192, 168, 1, 7), relayed = platform::IpAddress::v4(127, 0, 0, 1),
             elsewhere = platform::IpAddress::v4(11, 2, 3, 4);
  QVERIFY(is_near(home, false) && is_near(home, true));
  QVERIFY(!is_near(relayed, false) && is_near(relayed, true));
  QVERIFY(!is_near(elsewhere, false) && !is_near(elsewhere, true));
}

NS_TEST(TestChainVouching)
#include "test_vouching.moc"
