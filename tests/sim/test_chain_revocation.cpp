// A thief runs with a copy of a node's key: it trains, contributes and votes as that node. The node's wallet revokes
// the key at another node. Within one round the key neither votes nor contributes nor registers again, whatever the
// thief sends, and the others go on. Without the revocation it counts on and on.
#include <QtTest>

#include "core/sim/identities.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using chain::Verdict;
using test::answer_to;
using test::ChainLab;
using test::contribution_in;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::post_of;
using test::PostKind;

namespace {

constexpr std::uint64_t seed = 11;

// The stolen key's part in the network, as node 0 sees it.
struct Seen {
  std::uint64_t last_counted = 0;     // round whose row takes its delta
  std::uint64_t last_committee = 0;   // height whose committee has it
  std::uint64_t last_registered = 0;  // height after which it is a member
};

class Theft {
 public:
  Theft(std::size_t nodes, std::size_t per_wallet, std::size_t stolen)
      : stolen_(stolen),
        wallet_(key_of_node(~seed, stolen / per_wallet)),
        lab(options(nodes, per_wallet), true, [this](std::size_t node) { return watch(node); }) {}

  // Looks at node 0 after each event. False: not in time.
  bool run_until(const std::function<bool()>& condition, Duration limit) {
    return lab.world.run_until(
        [&] {
          look();
          return condition();
        },
        limit);
  }
  bool run_to_round(std::uint64_t round) {
    return run_until([&] { return lab.world.round(0) >= round; }, 40 * lab_round);
  }
  const chain::ChainTip& tip(std::size_t node = 0) { return lab.world.chain(node).history()->tip(); }
  // By the owner's wallet, at some other node.
  Expected<void> revoke(std::size_t at) {
    chain::Statement statement;
    statement.node = lab.world.key(stolen_).public_key();
    statement.reference = {tip(at).height(), tip(at).block->hash};
    chain::sign_revocation(statement, wallet_, lab.world.network_id());
    return lab.world.chain(at).revoke(statement);
  }
  const crypto::KeyPair& wallet() const { return wallet_; }
  bool is_revoked(std::size_t node) {
    return tip(node).registry->revocation(lab.world.key(stolen_).public_key(), wallet_.public_key()) !=
           nullptr;
  }
  // Everything that the key can sign, to a node: whether it took some of it.
  bool takes_something(std::size_t node) {
    const chain::ChainTip& now = tip(node);
    const Hash256& opening = now.registry->opening(now.block->hash);
    auto work = *contribution_in(contribution_);
    work.contribution.opening = opening;
    work.contribution.round = now.registry->round() + 1;
    chain::sign_contribution(work.contribution, key(), network());
    auto vector = *chain::decode_vector(ByteSpan(vector_).subspan(1), chain::max_members, 1);
    vector.opening = opening;
    vector.round = work.contribution.round;
    chain::sign_vector(vector, key(), network());
    const chain::Vote vote{chain::VoteStep::Prepare, now.height() + 1, now.block->hash, 0, Hash256{1}};
    chain::Register joins;
    joins.delegation = crypto::delegate(wallet_, key().public_key(), network(),
                                        WallTime(std::chrono::hours(24 * 365 * 90)), 7);
    joins.beacon = {Hash256{3}, work.contribution.round, 100};
    bool taken = false;
    for (const Bytes& post :
         {post_of(work),
          chain::encode_item(chain::RoundsPost{rounds::vector_kind, chain::encode_vector(vector)}),
          chain::encode_item(chain::sign_vote(vote, number_, key(), network())), said(now, joins),
          said(now, chain::Away{}), said(now, chain::Back{})}) {
      const Verdict verdict = answer_to(lab, node, stolen_, post);
      ++verdicts[verdict];
      taken = taken || verdict == Verdict::Taken;
    }
    return taken;
  }

  Seen seen;
  std::map<Verdict, int> verdicts;

 private:
  static ChainWorldOptions options(std::size_t nodes, std::size_t per_wallet) {
    auto o = lab_options(seed, nodes);
    o.nodes_per_wallet = per_wallet;
    return o;
  }
  test::EditingCaller::Edit watch(std::size_t node) {
    if (node != stolen_) return nullptr;
    return [this](const net::Contact&, PostKind kind, Bytes* post) {
      if (kind == PostKind::Contribution) contribution_ = *post;
      if (kind == PostKind::Vector) vector_ = *post;
      return Fate::Send;
    };
  }
  void look() {
    const chain::Registry& registry = *tip().registry;
    const chain::MemberRecord* member = registry.find(lab.world.id(stolen_));
    if (member != nullptr) {
      number_ = member->number;
      seen.last_registered = registry.height();
    }
    if (tip().committee->position(number_)) seen.last_committee = registry.height() + 1;
    if (!registry.closed()) return;
    for (const auto& row : registry.closed()->contributors)
      if (std::binary_search(row.begin(), row.end(), number_)) seen.last_counted = registry.round() + 1;
  }
  Bytes said(const chain::ChainTip& now, decltype(chain::Statement::what) what) {
    chain::Statement statement;
    statement.reference = {now.height(), now.block->hash};
    statement.what = std::move(what);
    chain::sign_statement(statement, key(), network());
    return chain::encode_item(chain::StatementPost{statement});
  }
  const crypto::KeyPair& key() const { return lab.world.key(stolen_); }
  const Hash256& network() const { return lab.world.network_id(); }

  const std::size_t stolen_;
  const crypto::KeyPair wallet_;
  std::uint32_t number_ = 0;
  Bytes contribution_, vector_;

 public:
  ChainLab lab;
};

class TestChainRevocation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_stolen_key_stops_counting_within_one_round_data();
  void a_stolen_key_stops_counting_within_one_round();
};

void TestChainRevocation::a_stolen_key_stops_counting_within_one_round_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<int>("per_wallet");
  QTest::addColumn<int>("at");     // node that sends the revocation
  QTest::addColumn<int>("phase");  // seconds into the round
  QTest::addColumn<bool>("revoked");
  QTest::newRow("not revoked, the control") << 5 << 1 << 0 << 0 << false;
  QTest::newRow("as the round begins, at a stranger's node") << 5 << 1 << 0 << 0 << true;
  QTest::newRow("in mid-round, at a stranger's node") << 5 << 1 << 1 << 2 << true;
  QTest::newRow("late in the round, at another node of the wallet") << 6 << 2 << 4 << 3 << true;
  QTest::newRow("one of three voters") << 3 << 1 << 1 << 1 << true;
  QTest::newRow("20 voters, who relay along a grid") << 20 << 1 << 7 << 2 << true;
}

void TestChainRevocation::a_stolen_key_stops_counting_within_one_round() {
  QFETCH(int, nodes);
  QFETCH(int, per_wallet);
  QFETCH(int, at);
  QFETCH(int, phase);
  QFETCH(bool, revoked);
  const auto stolen = static_cast<std::size_t>(nodes - 1);
  Theft theft(static_cast<std::size_t>(nodes), static_cast<std::size_t>(per_wallet), stolen);
  ChainLab& lab = theft.lab;
  QVERIFY2(theft.run_to_round(4), lab.text("before").c_str());
  theft.run_until([] { return false; }, phase * lab_second);
  const std::uint64_t round = lab.world.round(0), height = lab.world.height(0);
  QVERIFY2(theft.seen.last_counted >= round, lab.text("the thief counts").c_str());
  QCOMPARE(theft.seen.last_committee, height + 1);
  const MonotonicTime begun = lab.world.world().now();
  if (revoked) {
    const auto sent = theft.revoke(static_cast<std::size_t>(at));
    QVERIFY2(sent.ok(), sent.ok() ? "" : sent.error().message.c_str());
    QVERIFY2(theft.run_until([&] { return theft.is_revoked(0); }, 3 * lab_round),
             lab.text("a block has it").c_str());
  }
  const double took = to_seconds(lab.world.world().now() - begun);
  const std::uint64_t block = lab.world.height(0);
  QVERIFY2(theft.run_to_round(round + 8), lab.text("the others go on").c_str());
  qInfo(
      "%s: sent in round %llu, in block %llu (%llu after the newest) after %.1f s; the key counted until "
      "round "
      "%llu, voted until block %llu of %llu; rounds since: %llu",
      QTest::currentDataTag(), static_cast<unsigned long long>(round + 1),
      static_cast<unsigned long long>(block), static_cast<unsigned long long>(block - height), took,
      static_cast<unsigned long long>(theft.seen.last_counted),
      static_cast<unsigned long long>(theft.seen.last_committee),
      static_cast<unsigned long long>(lab.world.height(0)),
      static_cast<unsigned long long>(lab.world.round(0) - round));
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QCOMPARE(lab.world.seen().twice, 0u);
  if (!revoked) {
    QVERIFY2(theft.seen.last_counted >= round + 7, lab.text("the control counts on").c_str());
    QVERIFY(theft.seen.last_committee >= lab.world.height(0));
    return;
  }
  QVERIFY2(theft.seen.last_counted <= round + 1, lab.text("no later round counts it").c_str());
  QVERIFY(theft.seen.last_committee <= block);
  QVERIFY(theft.seen.last_registered < block);
  // The thief's machine goes on, restarts, and sends all that its key can sign, in round after round.
  QVERIFY(lab.world.chain(stolen).view().revoked);
  lab.world.kill(stolen);
  lab.world.start(stolen);
  for (int i = 0; i < 8; ++i) {
    for (std::size_t node = 0; node < stolen; ++node)
      QVERIFY2(!theft.takes_something(node), lab.text("nobody takes anything").c_str());
    theft.run_until([] { return false; }, lab_round / 2);
  }
  QVERIFY2(theft.run_to_round(lab.world.round(0) + 2), lab.text("and later").c_str());
  QVERIFY2(theft.seen.last_counted <= round + 1, lab.text("still").c_str());
  QVERIFY(theft.seen.last_registered < block);
  for (const auto& [verdict, count] : theft.verdicts) {
    qInfo("  %s: %d", std::string(chain::to_string(verdict)).c_str(), count);
    QVERIFY(verdict == Verdict::NotMember || verdict == Verdict::Inadmissible || verdict == Verdict::Later);
  }
  // No evidence of what the key signs now can expel the wallet.
  const chain::WalletRecord* wallet = theft.tip().registry->wallet(theft.wallet().public_key());
  QVERIFY(wallet != nullptr && !wallet->expelled);
}

}  // namespace

NS_TEST(TestChainRevocation)
#include "test_chain_revocation.moc"
