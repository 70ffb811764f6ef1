// The cost of checking a contribution: a stranger's word starts no long hashing, and a member's own does once.
#include <QtTest>

#include "core/rounds/contribution_book.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::Verdict;

namespace {

constexpr std::uint64_t near_round = 100, far_round = 400;

class CountingChecks final : public chain::SignatureChecks {
 public:
  bool entry(const chain::ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
             const crypto::PublicKey& node, const Hash256& network) override {
    ++entries;
    return chain::entry_holds(entry, opening, round, node, network);
  }
  int entries = 0;
};

// A lone founder that has revealed nothing since round 1.
struct Bench {
  Bench() {
    chain::BlockBody body;
    body.genesis.emplace();
    body.genesis->anchors = chain::small::anchors();
    auto registration = chain::small::registration_of(party());
    registration.beacon = beacon.commitment();
    body.genesis->founders = {chain::small::statement_of(party(), registration, {})};
    const auto made = chain::apply_genesis(chain.rules, chain::small::first_ms, body, chain.checks);
    if (!made.ok()) qFatal("genesis: %s", made.error().message.c_str());
    const auto block = chain::make_block(made->header, std::move(body), {}, chain::small::network);
    const chain::Quorum signers = chain.sign(*block, chain::VoteStep::Genesis, 0, {0});
    auto begun = chain::History::begin(chain.services(), make_certified(block, {signers, {}}));
    if (!begun.ok()) qFatal("history: %s", begun.error().message.c_str());
    history.emplace(std::move(*begun));
  }
  const chain::small::Party& party() const { return chain.parties[0]; }
  void go_to(std::uint64_t round) {
    while (history->tip().registry->round() + 1 < round) {
      const auto next = chain.certified(history->tip(), chain.round_step(history->tip()));
      if (const auto appended = history->append(next); !appended.ok())
        qFatal("block: %s", appended.error().message.c_str());
    }
    book.open(history->tip());
  }
  chain::Contribution contribution(const Hash256& reveal, const crypto::KeyPair& signer) const {
    chain::Contribution made;
    made.opening = book.opening();
    made.round = book.round();
    made.rows = {{0, 1, 16, Hash256{1}}};
    made.reveal = reveal;
    made.node = party().node.public_key();
    chain::sign_contribution(made, signer, chain::small::network);
    made.node = party().node.public_key();
    return made;
  }
  Taken take(const chain::Contribution& contribution) {
    return book.take(std::make_shared<const HeldContribution>(contribution), history->tip());
  }

  chain::small::Chain chain{1};
  const chain::BeaconChain beacon{Hash256{5}, 1, 4096};
  std::optional<chain::History> history;
  CountingChecks checks;
  RoundPool pool;
  ContributionBook book{chain.rules, {{0, 0, 1024}}, {}, checks, pool};
};

}  // namespace

class TestContributionBook : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_stranger_starts_no_long_hashing();
  void a_costly_wrong_reveal_is_computed_once();
  void another_signature_makes_no_other_contribution();
  void a_certified_payload_of_impossible_size_is_not_wanted_data();
  void a_certified_payload_of_impossible_size_is_not_wanted();
  void a_payload_of_another_contribution_is_not_taken();
};

void TestContributionBook::a_stranger_starts_no_long_hashing() {
  const crypto::KeyPair stranger = test::key_numbered(999);
  Bench bench;
  // A short gap costs less than a signature and is checked before it.
  bench.go_to(near_round);
  QCOMPARE(bench.take(bench.contribution(Hash256{6}, stranger)).verdict, Verdict::Inadmissible);
  QCOMPARE(bench.checks.entries, 0);
  // Planted: a check that hashes first finds this one inadmissible.
  bench.go_to(far_round);
  QCOMPARE(bench.take(bench.contribution(Hash256{6}, stranger)).verdict, Verdict::BadSignature);
  QCOMPARE(bench.checks.entries, 1);
  const Hash256 right = *bench.beacon.reveal(far_round);
  QCOMPARE(bench.take(bench.contribution(right, bench.party().node)).verdict, Verdict::Taken);
  QCOMPARE(bench.take(bench.contribution(right, bench.party().node)).verdict, Verdict::Known);
  QCOMPARE(bench.checks.entries, 2);
}

void TestContributionBook::a_costly_wrong_reveal_is_computed_once() {
  Bench bench;
  bench.go_to(far_round);
  const auto first = bench.contribution(Hash256{6}, bench.party().node);
  QCOMPARE(bench.take(first).verdict, Verdict::Inadmissible);
  QCOMPARE(bench.checks.entries, 1);
  QCOMPARE(bench.take(first).verdict, Verdict::Inadmissible);
  QCOMPARE(bench.checks.entries, 1);
  const auto second = bench.take(bench.contribution(Hash256{7}, bench.party().node));
  QCOMPARE(second.verdict, Verdict::Equivocation);
  QVERIFY(second.evidence && chain::evidence_holds(*second.evidence, chain::small::network));
  // The next round begins anew.
  bench.go_to(far_round + 1);
  const Hash256 right = *bench.beacon.reveal(far_round + 1);
  QCOMPARE(bench.take(bench.contribution(right, bench.party().node)).verdict, Verdict::Taken);
}

// The leader shows one of them to the others and puts another one into its block.
void TestContributionBook::another_signature_makes_no_other_contribution() {
  Bench bench;
  bench.go_to(near_round);
  const auto first = bench.contribution(*bench.beacon.reveal(near_round), bench.party().node);
  QCOMPARE(bench.take(first).verdict, Verdict::Taken);
  chain::Contribution other = first;
  other.signature[0] ^= 1;
  QCOMPARE(bench.take(other).verdict, Verdict::Known);
  const chain::MemberRecord& member = bench.history->tip().registry->members().front();
  const chain::ContributionEntry entry = chain::entry_of(other, member.number);
  const HeldContribution held(first);
  QVERIFY(is_entry_of(entry, held));
  QVERIFY(bench.book.take_certified(std::make_shared<const HeldContribution>(other), entry, member.id));
  QVERIFY(bench.book.find(member.number)->held->get() == first);  // and its payloads stay
  chain::ContributionEntry more = entry;
  ++more.tokens;
  QVERIFY(!is_entry_of(more, held));
}

void TestContributionBook::a_certified_payload_of_impossible_size_is_not_wanted_data() {
  QTest::addColumn<quint32>("row");
  QTest::addColumn<quint64>("bytes");
  QTest::addColumn<bool>("wanted");
  QTest::newRow("possible") << 0u << quint64{16} << true;
  QTest::newRow("much too large") << 0u << (quint64{1} << 63) << false;
  QTest::newRow("without bytes") << 0u << quint64{0} << false;
  QTest::newRow("of no row") << 4'000'000'000u << quint64{16} << false;
}

// A leader brought it into a block: nobody has checked more than its entry.
void TestContributionBook::a_certified_payload_of_impossible_size_is_not_wanted() {
  QFETCH(quint32, row);
  QFETCH(quint64, bytes);
  QFETCH(bool, wanted);
  Bench bench;
  bench.go_to(1);
  auto contribution = bench.contribution(*bench.beacon.reveal(1), bench.party().node);
  contribution.rows[0].row = row;
  contribution.rows[0].payload_bytes = bytes;
  chain::sign_contribution(contribution, bench.party().node, chain::small::network);
  const std::uint32_t member = bench.history->tip().registry->members().front().number;
  const net::NodeId id = bench.history->tip().registry->members().front().id;
  QVERIFY(bench.book.take_certified(std::make_shared<const HeldContribution>(contribution),
                                    chain::entry_of(contribution, member), id));
  QCOMPARE(bench.book.wants(*bench.book.find(member), 0), wanted);
  QCOMPARE(bench.book.incomplete().count(member), std::size_t{wanted ? 1u : 0u});
}

// The close may name another contribution of a member while the payload of the first one is on its way.
void TestContributionBook::a_payload_of_another_contribution_is_not_taken() {
  Bench bench;
  bench.go_to(1);
  auto contribution = bench.contribution(*bench.beacon.reveal(1), bench.party().node);
  QCOMPARE(bench.take(contribution).verdict, Verdict::Taken);
  const std::uint32_t member = bench.history->tip().registry->members().front().number;
  PayloadReading first;
  first.root = contribution.rows[0].payload;
  contribution.rows[0].payload = Hash256{2};
  chain::sign_contribution(contribution, bench.party().node, chain::small::network);
  QVERIFY(bench.book.take_certified(std::make_shared<const HeldContribution>(contribution),
                                    chain::entry_of(contribution, member),
                                    bench.history->tip().registry->members().front().id));
  const Payload payload = in_memory(Bytes(16));
  QVERIFY(!bench.book.take_payload(member, 0, payload, first));
  QVERIFY(bench.book.wants(*bench.book.find(member), 0));
  PayloadReading second;
  second.root = Hash256{2};
  QVERIFY(bench.book.take_payload(member, 0, payload, second));
  QVERIFY(!bench.book.wants(*bench.book.find(member), 0));
}

NS_TEST(TestContributionBook)
#include "test_contribution_book.moc"
