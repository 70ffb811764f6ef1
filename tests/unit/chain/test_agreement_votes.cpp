// Votes, locks and the memory of one member alone: what it checks before signatures, what it takes as evidence
// and as a lock, and how its memory binds it.
#include <QtTest>
#include <limits>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bench.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

constexpr std::uint32_t furthest = std::numeric_limits<std::uint32_t>::max();
constexpr Hash256 previous = bus_previous;

}  // namespace

class TestAgreementVotes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_votes_of_one_member_are_evidence();
  void a_lock_that_names_another_vote_is_evidence();
  void cheap_checks_come_first();
  void stall_locks_count_in_a_stall_only();
  void a_lock_travels_to_the_leader_only();
  void the_memory_binds_after_a_restart();
  void memory_is_canonical();
};

// Planted: on_vote() that compares the step alone, or that counts the second vote.
void TestAgreementVotes::two_votes_of_one_member_are_evidence() {
  Bench bench(equal_units(4));
  const Hash256 a = bus_block(1, false)->hash, b = bus_block(2, false)->hash, c = bus_block(3, false)->hash;
  const std::size_t one = bench.other(0), two = bench.other(1);
  const auto take = [&bench](const SignedVote& vote) {
    return bench.agreement->on_item(bench.other(2), vote);
  };
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, a)), Verdict::Taken);
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, a)), Verdict::Known);
  // Another step and another view exclude nothing.
  QCOMPARE(take(bench.vote(one, VoteStep::Commit, 0, b)), Verdict::Taken);
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 1, b)), Verdict::Taken);
  QCOMPARE(take(bench.vote(two, VoteStep::Prepare, 0, b)), Verdict::Taken);
  QVERIFY(bench.evidence.empty());
  // A forged second vote proves nothing.
  SignedVote forged = bench.vote(two, VoteStep::Prepare, 0, b);
  forged.voter = bench.committee->members()[one].number;
  QCOMPARE(take(forged), Verdict::BadSignature);
  QVERIFY(bench.evidence.empty());
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, b)), Verdict::Equivocation);
  QCOMPARE(bench.evidence.size(), std::size_t(1));
  QCOMPARE(bench.evidence[0].node, bench.keys[one].public_key());
  QVERIFY(evidence_holds(bench.evidence[0], {}));
  // Once is enough; more of them cost no signature check.
  const int checked = bench.checks.checked;
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, c)), Verdict::Equivocation);
  QCOMPARE(bench.evidence.size(), std::size_t(1));
  QCOMPARE(bench.checks.checked, checked);
}

// A member votes for one block to this one and for another one to the others, who show their lock. Planted: locks
// that are not compared with votes.
void TestAgreementVotes::a_lock_that_names_another_vote_is_evidence() {
  const BlockPtr a = bus_block(1, false), b = bus_block(2, false);
  for (const bool lock_first : {false, true}) {
    Bench bench(equal_units(4));
    const std::size_t liar = bench.other(1), honest = bench.other(0);
    const auto take = [&bench](const SignedVote& vote) {
      return bench.agreement->on_item(bench.other(2), vote);
    };
    const Quorum lock = bench.prepares(3, 0, b);
    if (lock_first) {
      QCOMPARE(bench.show_lock(lock, b), Verdict::Taken);
    }
    QCOMPARE(take(bench.vote(honest, VoteStep::Prepare, 0, b->hash)), Verdict::Taken);
    QCOMPARE(take(bench.vote(liar, VoteStep::Prepare, 0, a->hash)), Verdict::Taken);
    if (!lock_first) {
      QVERIFY(bench.evidence.empty());
      QCOMPARE(bench.show_lock(lock, b), Verdict::Taken);
    }
    QCOMPARE(bench.evidence.size(), std::size_t(1));
    QCOMPARE(bench.evidence[0].node, bench.keys[liar].public_key());
    QVERIFY(evidence_holds(bench.evidence[0], {}));
    // Certificates are compared in the same way.
    Quorum commits = bench.prepares(3, 0, b);
    commits.step = VoteStep::Commit;
    QVERIFY(bench.agreement->votes().contradictions(commits).empty());
  }
}

void TestAgreementVotes::cheap_checks_come_first() {
  Bench bench(equal_units(4));
  const BlockPtr block = bus_block(1, false);
  const std::size_t one = bench.other(0), stranger = 4;
  const auto take = [&](std::size_t from, const AgreementItem& item) {
    return bench.agreement->on_item(from, item);
  };
  SignedVote vote = bench.vote(one, VoteStep::Prepare, 0, block->hash);
  const auto with = [&vote](auto change) {
    SignedVote other = vote;
    change(other);
    return other;
  };
  QCOMPARE(take(stranger, vote), Verdict::NotMember);
  QCOMPARE(take(one, with([](SignedVote& v) { v.voter = 99; })), Verdict::NotMember);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.height--; })), Verdict::Past);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.height++; })), Verdict::Later);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.previous[0]++; })), Verdict::OtherHistory);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.step = VoteStep::Genesis; })), Verdict::Malformed);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.view = votes_ahead + 1; })), Verdict::Later);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.view = furthest; })), Verdict::OtherView);
  // Locks: too few units, a signer twice, another block, another step, a later view than the NewView's.
  Quorum lock = bench.prepares(3, 0, block);
  const auto show = [&](auto change) {
    Quorum other = lock;
    change(other);
    return bench.show_lock(other, block);
  };
  QCOMPARE(show([](Quorum& q) { q.signatures.pop_back(); }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.signatures[2] = q.signatures[1]; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.signatures[2].voter = 77; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.block[0]++; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.step = VoteStep::Commit; }), Verdict::BadCertificate);
  QCOMPARE(take(one, NewView{bus_height, previous, 1, lock, nullptr, {}}), Verdict::Malformed);
  QCOMPARE(take(one, NewView{bus_height, previous, 1, {}, block, {}}), Verdict::Malformed);
  QCOMPARE(take(one, Proposal{0, nullptr, {}, {}}), Verdict::Malformed);
  QCOMPARE(take(bench.committee->leader(1), Proposal{0, block, {}, {}}), Verdict::NotLeader);
  QCOMPARE(take(one, Locked{lock, {}}), Verdict::Later);  // its block is not known yet
  QCOMPARE(bench.checks.checked, 0);
  // A signature that does not hold.
  QCOMPARE(show([](Quorum& q) { q.signatures[2].signature[5]++; }), Verdict::BadCertificate);
  QVERIFY(!bench.agreement->memory().lock);
  // The lock itself, and then it costs nothing any more.
  QCOMPARE(bench.show_lock(lock, block), Verdict::Taken);
  QVERIFY(bench.agreement->memory().lock && bench.agreement->memory().lock->block == block->hash);
  const int checked = bench.checks.checked;
  QCOMPARE(bench.show_lock(lock, block), Verdict::Taken);
  QCOMPARE(bench.checks.checked, checked);
}

// Planted: check() without `suffices` takes the lock at once; without the earlier lock it takes any block's.
void TestAgreementVotes::stall_locks_count_in_a_stall_only() {
  const BlockPtr presence = bus_block(1, true), content = bus_block(2, false), other = bus_block(3, false);
  Bench bench(equal_units(6));
  const Quorum stall_lock = bench.prepares(4, 3, presence);
  QCOMPARE(bench.show_lock(stall_lock, presence), Verdict::Later);
  QVERIFY(!bench.agreement->memory().lock);
  QCOMPARE(bench.checks.checked, 0);
  bench.agreement->stall();
  QCOMPARE(bench.show_lock(stall_lock, presence), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, presence->hash);
  QCOMPARE(bench.view(), 3u);
  // Of a block that changes more, with an earlier lock of more than two thirds of that block, and no other.
  const Quorum with_content = bench.prepares(4, 5, content);
  QCOMPARE(bench.show_lock(with_content, content), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(4, 1, content)), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(5, 1, other)), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(5, 5, content)), Verdict::BadCertificate);
  Quorum forged = bench.prepares(5, 1, content);
  forged.signatures[4].signature[0]++;
  QCOMPARE(bench.show_lock(with_content, content, forged), Verdict::BadCertificate);
  QCOMPARE(bench.agreement->memory().lock->block, presence->hash);
  const Quorum full = bench.prepares(5, 1, content);
  QCOMPARE(bench.show_lock(with_content, content, full), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, content->hash);
  QVERIFY(bench.agreement->memory().full_lock && *bench.agreement->memory().full_lock == full);
  // Kept, and told to leaders with it.
  const auto memory = decode_agreement_memory(bench.disk, {});
  QVERIFY(memory.ok() && memory->full_lock && *memory->full_lock == full);
  bench.sent.clear();
  bench.say(0, 3, 6);
  const auto told = std::find_if(bench.sent.begin(), bench.sent.end(), [](const auto& sent) {
    const auto* new_view = std::get_if<NewView>(&sent.first);
    return new_view != nullptr && new_view->lock;
  });
  if (!bench.agreement->leads()) {
    QVERIFY(told != bench.sent.end());
    QVERIFY(std::get<NewView>(told->first).full == full);
  }
}

// Planted: send_new_view() to all.
void TestAgreementVotes::a_lock_travels_to_the_leader_only() {
  Bench bench(equal_units(7));
  const BlockPtr block = bus_block(1, false);
  QCOMPARE(bench.show_lock(bench.prepares(5, 0, block), block), Verdict::Taken);
  bench.sent.clear();
  bench.say(0, 3, 2);
  QCOMPARE(bench.view(), 2u);
  int bare = 0, full = 0;
  for (const auto& [item, to] : bench.sent) {
    const auto* said = std::get_if<NewView>(&item);
    if (said == nullptr) continue;
    QCOMPARE(said->lock.has_value(), to.has_value());
    QCOMPARE(said->block != nullptr, to.has_value());
    if (to) QCOMPARE(*to, bench.committee->leader(2));
    ++(to ? full : bare);
  }
  QCOMPARE(bare, 1);
  QCOMPARE(full, 1);
}

// It prepared a block of view 0 and has a lock of view 1. Planted: an Agreement that ignores its memory.
void TestAgreementVotes::the_memory_binds_after_a_restart() {
  const BlockPtr first = bus_block(1, false), second_block = bus_block(2, false);
  Bench bench(equal_units(4));
  const auto prepared = [&bench] {
    std::vector<Hash256> blocks;
    for (const auto& [item, to] : std::exchange(bench.sent, {}))
      if (const auto* vote = std::get_if<SignedVote>(&item); vote && vote->vote.step == VoteStep::Prepare)
        blocks.push_back(vote->vote.block);
    return blocks;
  };
  const auto find_all_right = [&bench] {
    for (const auto& [block, demand] : std::exchange(bench.questions, {}))
      bench.agreement->judged(block, demand, true);
  };
  bench.propose_as_leader(0, first);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{first->hash});
  bench.begin(*decode_agreement_memory(bench.disk, {}));
  bench.propose_as_leader(0, second_block);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{});
  // The lock: nothing else is prepared in later views, until there is a later lock.
  QCOMPARE(bench.show_lock(bench.prepares(3, 1, first), first), Verdict::Taken);
  bench.begin(*decode_agreement_memory(bench.disk, {}));
  bench.say(0, 3, 2);
  bench.propose_as_leader(2, second_block);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{});
  QCOMPARE(bench.show_lock(bench.prepares(3, 2, second_block), second_block), Verdict::Taken);
  find_all_right();
  // A memory of another height or history says nothing about this one.
  AgreementMemory other = bench.agreement->memory();
  other.height++;
  bench.begin(other);
  QVERIFY(!bench.agreement->memory().lock);
  QCOMPARE(bench.view(), 0u);
  QCOMPARE(bench.agreement->memory().height, bus_height);
}

void TestAgreementVotes::memory_is_canonical() {
  Bench bench(equal_units(6));
  const BlockPtr block = bus_block(2, false);
  AgreementMemory memory;
  memory.height = bus_height;
  memory.previous = previous;
  memory.view = 9;
  const auto check = [](const AgreementMemory& whole) {
    const Bytes bytes = encode_agreement_memory(whole);
    const auto read = decode_agreement_memory(bytes, {});
    QVERIFY(read.ok());
    QVERIFY(encode_agreement_memory(*read) == bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto cut = decode_agreement_memory(ByteSpan(bytes).first(i), {});
      QVERIFY(!cut.ok() && cut.error().code == ErrorCode::Corrupt);
    }
    Bytes longer = bytes;
    longer.push_back(0);
    QVERIFY(!decode_agreement_memory(longer, {}).ok());
    // With one byte changed it is another canonical memory, Corrupt, or of a later version.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Bytes other = bytes;
      other[i] ^= 0x41;
      const auto changed = decode_agreement_memory(other, {});
      if (changed.ok()) QVERIFY(encode_agreement_memory(*changed) == other);
      if (!changed.ok()) QVERIFY(changed.error().code == ErrorCode::Corrupt || i == 4 || i == 5);
    }
  };
  check(memory);
  memory.prepared = block->hash;
  check(memory);
  memory.lock = std::make_shared<const Quorum>(bench.prepares(4, 7, block));
  memory.block = block;
  check(memory);
  memory.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 3, block));
  check(memory);
  // Parts that do not belong together.
  const auto refused = [](AgreementMemory wrong) {
    return !decode_agreement_memory(encode_agreement_memory(wrong), {}).ok();
  };
  AgreementMemory wrong = memory;
  wrong.view = 6;
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 7, block));
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 3, bus_block(3, false)));
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.block = bus_block(4, false);
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.height++;
  QVERIFY(refused(wrong));
}

NS_TEST(TestAgreementVotes)
#include "test_agreement_votes.moc"
