// Statements and evidence that wait for a block: one statement of each kind and node, nothing inadmissible,
// presence first.
#include <QtTest>

#include "core/chain/mempool.h"
#include "core/chain/messages.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using small::Chain;
using small::party_of;
using small::reference_to;
using small::statement_of;

namespace {

struct Fixture {
  Chain chain;
  History history;
  Mempool pool;
  explicit Fixture(std::size_t founders = 4)
      : chain(founders), history(chain.begin()), pool(chain.rules, chain.checks) {}
  const ChainTip& tip() const { return history.tip(); }
  Statement from(std::uint32_t number, decltype(Statement::what) what) const {
    return statement_of(chain.parties[number], std::move(what), reference_to(tip()));
  }
  Verdict take(const Statement& statement) { return pool.take(statement, tip()); }
  void grow() { grow(chain.certified(tip(), chain.round_step(tip()))); }
  void grow(const CertifiedBlock& block) {
    QVERIFY(history.append(block).ok());
    pool.on_tip(tip());
  }
  Commit commit(std::uint8_t mark) const {
    Commit what;
    what.beacon = {Hash256{mark}, tip().registry->round() + 9, 100};
    return what;
  }
  Statement registration(std::uint16_t number) const {
    const small::Party party = party_of(number);
    return statement_of(party, small::registration_of(party), reference_to(tip()));
  }
  Statement revocation(std::uint32_t number, const crypto::KeyPair& wallet) const {
    Statement statement;
    statement.node = chain.parties[number].node.public_key();
    statement.reference = reference_to(tip());
    sign_revocation(statement, wallet, small::network);
    return statement;
  }
  Statement revocation(std::uint32_t number) const {
    return revocation(number, chain.parties[number].wallet);
  }
  // A voter's votes for two blocks of one view.
  Evidence evidence(std::uint32_t number) const {
    const Vote one{VoteStep::Commit, tip().height() + 1, tip().block->hash, 0, Hash256{1}};
    const Vote two{VoteStep::Commit, tip().height() + 1, tip().block->hash, 0, Hash256{2}};
    const crypto::KeyPair& key = chain.parties[number].node;
    return evidence_of(key.public_key(), sign_vote(one, number, key, small::network),
                       sign_vote(two, number, key, small::network));
  }
};

}  // namespace

class TestMempool : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_keeps_one_of_a_kind_and_node();
  void what_no_block_could_contain_is_refused();
  void signatures_are_checked_last();
  void a_new_tip_drops_what_is_contained_or_refused();
  void an_old_reference_drops_it();
  void what_a_block_contained_can_not_be_shown_again();
  void presence_comes_first();
  void one_active_voter_always_stays();
  void presence_changes_are_a_part();
  void presence_of_a_candidate_can_wait();
  void registrations_are_bounded();
  void evidence_is_kept_until_it_is_contained();
  void what_is_over_by_now_is_dropped();
  void a_revocation_comes_before_what_a_thief_says();
  void a_flood_of_revocations_costs_no_signature_check();
};

void TestMempool::it_keeps_one_of_a_kind_and_node() {
  Fixture f;
  const Statement first = f.from(1, f.commit(1));
  QCOMPARE(f.take(first), Verdict::Taken);
  QCOMPARE(f.take(first), Verdict::Known);
  QCOMPARE(f.take(f.from(1, f.commit(2))), Verdict::Limit);  // one a block
  f.grow();
  const Statement newer = f.from(1, f.commit(3));
  QCOMPARE(f.take(newer), Verdict::Taken);
  QCOMPARE(f.take(first), Verdict::Known);
  QCOMPARE(f.pool.statements(f.tip()), std::vector<Statement>{newer});
  QCOMPARE(f.take(f.from(1, Away{})), Verdict::Taken);          // another kind
  QCOMPARE(f.pool.statements(f.tip()).size(), std::size_t{1});  // but one of a node in a block
}

void TestMempool::what_no_block_could_contain_is_refused() {
  Fixture f;
  QCOMPARE(f.take(f.from(1, Back{})), Verdict::Inadmissible);  // active already
  QCOMPARE(f.take(statement_of(party_of(50), Away{}, reference_to(f.tip()))), Verdict::Inadmissible);
  BlockReference other = reference_to(f.tip());
  other.hash[0] ^= 1;
  QCOMPARE(f.take(statement_of(f.chain.parties[1], Away{}, other)), Verdict::OtherHistory);
  BlockReference ahead = reference_to(f.tip());
  ahead.height += 5;
  QCOMPARE(f.take(statement_of(f.chain.parties[1], Away{}, ahead)), Verdict::Later);
  const BlockReference old = reference_to(f.tip());
  for (std::uint64_t i = 0; i < statement_life; ++i) f.grow();
  QCOMPARE(f.take(statement_of(f.chain.parties[1], Away{}, old)), Verdict::Past);
  QVERIFY(f.pool.empty());
}

void TestMempool::signatures_are_checked_last() {
  Fixture f;
  Statement forged = f.from(1, Away{});
  forged.signature[7] ^= 1;
  QCOMPARE(f.take(forged), Verdict::BadSignature);
  Statement useless = f.from(1, Back{});
  useless.signature[7] ^= 1;
  QCOMPARE(f.take(useless), Verdict::Inadmissible);
  // A forged statement does not take the place of the waiting one.
  const Statement waiting = f.from(1, f.commit(1));
  QCOMPARE(f.take(waiting), Verdict::Taken);
  f.grow();
  Statement newer = f.from(1, f.commit(2));
  newer.signature[0] ^= 1;
  QCOMPARE(f.take(newer), Verdict::BadSignature);
  QCOMPARE(f.pool.statements(f.tip()), std::vector<Statement>{waiting});
}

void TestMempool::a_new_tip_drops_what_is_contained_or_refused() {
  Fixture f;
  const Statement away = f.from(1, Away{});
  const Statement commit = f.from(2, f.commit(1));
  QCOMPARE(f.take(away), Verdict::Taken);
  QCOMPARE(f.take(commit), Verdict::Taken);
  QCOMPARE(f.take(f.from(3, Leave{})), Verdict::Taken);
  BlockBody body;
  body.statements = {away, f.from(3, Leave{})};
  f.grow(f.chain.certified(f.tip(), body));
  QCOMPARE(f.pool.statements(f.tip()), std::vector<Statement>{commit});
  QCOMPARE(f.take(away), Verdict::Known);
  body.statements = {commit};
  f.grow(f.chain.certified(f.tip(), body));
  QVERIFY(f.pool.empty());
}

void TestMempool::an_old_reference_drops_it() {
  Fixture f;
  QCOMPARE(f.take(f.from(1, f.commit(1))), Verdict::Taken);
  for (std::uint64_t i = 1; i < statement_life; ++i) f.grow();
  QVERIFY(!f.pool.empty());
  f.grow();
  QVERIFY(f.pool.empty());
}

// Anybody has the statements of old blocks; a voter does not become dormant by one of them.
void TestMempool::what_a_block_contained_can_not_be_shown_again() {
  Fixture f;
  BlockBody body;
  const Statement away = f.from(1, Away{});
  body.statements = {away};
  f.grow(f.chain.certified(f.tip(), body));
  const Statement back = f.from(1, Back{});
  body.statements = {back};
  f.grow(f.chain.certified(f.tip(), body));
  QCOMPARE(f.take(away), Verdict::Inadmissible);
  body.statements = {f.from(1, Away{})};
  f.grow(f.chain.certified(f.tip(), body));
  QCOMPARE(f.take(back), Verdict::Inadmissible);
  QCOMPARE(f.take(f.from(1, Back{})), Verdict::Taken);
}

void TestMempool::presence_comes_first() {
  Fixture f;
  for (const std::uint32_t number : {0u, 1u, 3u})
    QCOMPARE(f.take(f.from(number, f.commit(1))), Verdict::Taken);
  QVERIFY(!f.pool.changes_voters(f.tip()));
  QCOMPARE(f.take(f.from(2, Away{})), Verdict::Taken);
  QVERIFY(f.pool.changes_voters(f.tip()));
  const std::vector<Statement> statements = f.pool.statements(f.tip());
  QCOMPARE(statements.size(), std::size_t{4});
  QVERIFY(std::holds_alternative<Away>(statements[0].what));
  QCOMPARE(statements[0].node, f.chain.parties[2].node.public_key());
  QVERIFY(statements[1].node < statements[2].node && statements[2].node < statements[3].node);
  BlockBody body;
  body.statements = statements;
  f.grow(f.chain.certified(f.tip(), body));
  QVERIFY(f.pool.empty());
}

// Each Away could be in a block, all together could not: the block that is made of them is valid.
void TestMempool::one_active_voter_always_stays() {
  Fixture f;
  for (std::uint32_t i = 0; i < 4; ++i) QCOMPARE(f.take(f.from(i, Away{})), Verdict::Taken);
  BlockBody body;
  body.statements = f.pool.statements(f.tip());
  QCOMPARE(body.statements.size(), std::size_t{3});
  f.grow(f.chain.certified(f.tip(), body));
  QCOMPARE(f.tip().committee->size(), std::size_t{1});
  QVERIFY(f.pool.statements(f.tip()).empty());
}

void TestMempool::presence_changes_are_a_part() {
  Fixture f;
  QCOMPARE(f.take(f.from(0, f.commit(1))), Verdict::Taken);
  QVERIFY(f.pool.presence_changes(f.tip()).empty());
  const Statement away = f.from(1, Away{});
  QCOMPARE(f.take(away), Verdict::Taken);
  QCOMPARE(f.pool.take(f.evidence(2), f.tip()), Verdict::Taken);
  QCOMPARE(f.pool.presence_changes(f.tip()), std::vector<Statement>{away});
}

void TestMempool::registrations_are_bounded() {
  Fixture f;
  std::uint16_t number = 100;
  for (std::size_t i = 0; i < most_waiting_registrations; ++i)
    QCOMPARE(f.take(f.registration(number++)), Verdict::Taken);
  QCOMPARE(f.take(f.registration(number++)), Verdict::Limit);
  // Members have room all the same.
  QCOMPARE(f.take(f.from(1, f.commit(1))), Verdict::Taken);
  QCOMPARE(f.take(f.from(2, Away{})), Verdict::Taken);
  const std::vector<Statement> statements = f.pool.statements(f.tip());
  QCOMPARE(statements.size(), max_block_statements);
  QVERIFY(std::holds_alternative<Away>(statements[0].what));
}

// Keys of candidates are free.
void TestMempool::presence_of_a_candidate_can_wait() {
  Fixture f;
  const small::Party candidate = party_of(100);
  BlockBody body;
  body.statements = {f.registration(100)};
  f.grow(f.chain.certified(f.tip(), body));
  QCOMPARE(f.take(statement_of(candidate, Away{}, reference_to(f.tip()))), Verdict::Taken);
  Statement revocation;
  revocation.node = candidate.node.public_key();
  revocation.reference = reference_to(f.tip());
  sign_revocation(revocation, candidate.wallet, small::network);
  QCOMPARE(f.take(revocation), Verdict::Taken);
  QVERIFY(!f.pool.changes_voters(f.tip()) && !f.pool.empty());
  QCOMPARE(f.take(f.from(1, Away{})), Verdict::Taken);
  QVERIFY(f.pool.changes_voters(f.tip()));
}

void TestMempool::evidence_is_kept_until_it_is_contained() {
  Fixture f;
  const Evidence evidence = f.evidence(1);
  Evidence forged = f.evidence(2);
  std::get<TwoVotes>(forged.what).first.signature[0] ^= 1;
  QCOMPARE(f.pool.take(forged, f.tip()), Verdict::BadSignature);
  QCOMPARE(f.pool.take(evidence, f.tip()), Verdict::Taken);
  QCOMPARE(f.pool.take(evidence, f.tip()), Verdict::Known);
  QVERIFY(f.pool.has_evidence(f.chain.parties[1].node.public_key()));
  QVERIFY(!f.pool.changes_voters(f.tip()));
  f.grow();
  QCOMPARE(f.pool.evidence(f.tip()), std::vector<Evidence>{evidence});
  BlockBody body;
  body.evidence = f.pool.evidence(f.tip());
  f.grow(f.chain.certified(f.tip(), body));
  QVERIFY(f.pool.empty());
  QCOMPARE(f.tip().committee->size(), std::size_t{3});
  QCOMPARE(f.pool.take(evidence, f.tip()), Verdict::NotMember);
  // Of another history: its signatures hold, but no block of this one could contain it.
  const Vote one{VoteStep::Commit, 3, Hash256{8}, 0, Hash256{1}};
  const Vote two{VoteStep::Commit, 3, Hash256{8}, 0, Hash256{2}};
  const crypto::KeyPair& key = f.chain.parties[2].node;
  QCOMPARE(f.pool.take(evidence_of(key.public_key(), sign_vote(one, 2, key, small::network),
                                   sign_vote(two, 2, key, small::network)),
                       f.tip()),
           Verdict::Inadmissible);
}

// It was right when it came; its delegation ends a moment later.
void TestMempool::what_is_over_by_now_is_dropped() {
  Fixture f;
  const std::uint64_t tip_ms = f.tip().block->header.time_ms;
  const small::Party party = party_of(100);
  Register what = small::registration_of(party);
  what.delegation = crypto::delegate(party.wallet, party.node.public_key(), small::network,
                                     WallTime(std::chrono::milliseconds(tip_ms + 5)), 1);
  QCOMPARE(f.take(statement_of(party, what, reference_to(f.tip()))), Verdict::Taken);
  const Statement away = f.from(1, Away{});
  QCOMPARE(f.take(away), Verdict::Taken);
  f.pool.drop_late(f.tip(), tip_ms + 4);
  QCOMPARE(f.pool.statements(f.tip()).size(), std::size_t{2});
  f.pool.drop_late(f.tip(), tip_ms + 5);
  QCOMPARE(f.pool.statements(f.tip()), std::vector<Statement>{away});
}

// One of a node is in a block, and the thief has the node's key.
void TestMempool::a_revocation_comes_before_what_a_thief_says() {
  Fixture f;
  QCOMPARE(f.take(f.from(2, Away{})), Verdict::Taken);
  QCOMPARE(f.take(f.from(2, f.commit(1))), Verdict::Taken);
  QCOMPARE(f.take(f.from(1, Away{})), Verdict::Taken);
  const Statement revocation = f.revocation(2);
  QCOMPARE(f.take(revocation), Verdict::Taken);
  const std::vector<Statement> statements = f.pool.statements(f.tip());
  QCOMPARE(statements.size(), std::size_t{2});
  QCOMPARE(statements[0], revocation);
  QVERIFY(std::holds_alternative<Away>(statements[1].what));
  QCOMPARE(f.pool.presence_changes(f.tip()).size(),
           std::size_t{2});  // a stall quorum does not suffice for it
  BlockBody body;
  body.statements = statements;
  f.grow(f.chain.certified(f.tip(), body));
  QVERIFY(f.pool.empty());
  QCOMPARE(f.take(f.revocation(2)), Verdict::Inadmissible);
  // Alone it is reason enough for a block.
  QCOMPARE(f.take(f.revocation(3)), Verdict::Taken);
  QVERIFY(f.pool.changes_voters(f.tip()));
}

void TestMempool::a_flood_of_revocations_costs_no_signature_check() {
  struct Counted final : SignatureChecks {
    std::uint64_t count = 0;
    bool statement(const Statement& statement, const Hash256& network) override {
      ++count;
      return statement_holds(statement, network);
    }
  } counted;
  Fixture f;
  Mempool pool(f.chain.rules, counted);
  const auto take = [&](const Statement& statement) { return pool.take(statement, f.tip()); };
  Statement flood = f.revocation(1);
  for (std::uint16_t i = 0; i < 1000; ++i) {
    flood.node = party_of(static_cast<std::uint16_t>(2000 + i)).node.public_key();  // no member
    QCOMPARE(take(flood), Verdict::Inadmissible);
  }
  const small::Party stranger = party_of(77);
  for (std::uint32_t i = 0; i < 4; ++i) {
    QCOMPARE(take(f.revocation(i, stranger.wallet)), Verdict::Inadmissible);
    QCOMPARE(take(f.revocation(i, f.chain.parties[(i + 1) % 4].wallet)), Verdict::Inadmissible);
  }
  Statement elsewhere = f.revocation(1);
  elsewhere.reference.hash[0] ^= 1;
  QCOMPARE(take(elsewhere), Verdict::OtherHistory);
  QCOMPARE(counted.count, std::uint64_t{0});
  // One that names a member and its wallet costs a check. A wrong one counts against its sender.
  Statement forged = f.revocation(1);
  forged.signature[0] ^= 1;
  QCOMPARE(take(forged), Verdict::BadSignature);
  QCOMPARE(take(f.revocation(1)), Verdict::Taken);
  QCOMPARE(take(f.revocation(1)), Verdict::Known);
  QCOMPARE(counted.count, std::uint64_t{2});
}

NS_TEST(TestMempool)
#include "test_mempool.moc"
