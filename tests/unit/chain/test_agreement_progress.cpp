// The rules of docs/protocol/safety.md without which honest members that hear each other can stand still: one
// member alone, and what the others say to it.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bench.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

// Messages that it sent since the last time.
struct Sent {
  std::vector<Hash256> prepared, committed;
  std::vector<Proposal> proposals;
  std::vector<NewView> to_leaders;
};
Sent take_sent(Bench& bench) {
  Sent sent;
  for (const auto& [item, to] : std::exchange(bench.sent, {})) {
    if (const auto* vote = std::get_if<SignedVote>(&item))
      (vote->vote.step == VoteStep::Prepare ? sent.prepared : sent.committed).push_back(vote->vote.block);
    if (const auto* proposal = std::get_if<Proposal>(&item)) sent.proposals.push_back(*proposal);
    if (const auto* new_view = std::get_if<NewView>(&item); new_view && to)
      sent.to_leaders.push_back(*new_view);
  }
  return sent;
}

void find_all_right(Bench& bench) {
  for (const auto& [block, demand] : std::exchange(bench.questions, {}))
    bench.agreement->judged(block, demand, true);
}

AgreementMemory on_disk(const Bench& bench) {
  return *decode_agreement_memory(bench.disk, {});
}

enum class Way { Vote, NewView, Locked };

// The last prepare of a lock of view 0, or the lock, comes to a member that is in view 1.
void complete_lock(Bench& bench, Way way, const BlockPtr& block) {
  const Quorum lock = bench.prepares(3, 0, block);
  if (way == Way::Vote)
    bench.agreement->on_item(bench.other(2), bench.vote(bench.other(2), VoteStep::Prepare, 0, block->hash));
  if (way == Way::NewView) QCOMPARE(bench.show_lock(lock, block), Verdict::Taken);
  if (way == Way::Locked)
    QCOMPARE(bench.agreement->on_item(bench.other(0), Locked{lock, {}}), Verdict::Taken);
}

}  // namespace

class TestAgreementProgress : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void ways_data();
  void a_late_lock_waits_for_the_next_view_data() { ways_data(); }
  void a_late_lock_waits_for_the_next_view();
  void a_late_lock_counts_when_the_proposal_shows_it_data() { ways_data(); }
  void a_late_lock_counts_when_the_proposal_shows_it();
  void the_lock_of_the_present_view_counts_at_once();
  void a_leader_takes_locks_until_it_proposes();
  void a_leader_waits_a_short_while_for_the_others();
  void a_leader_that_all_have_told_waits_no_longer();
  void in_a_stall_a_leader_waits_for_more_than_the_stall_quorum();
};

void TestAgreementProgress::ways_data() {
  QTest::addColumn<int>("way");
  QTest::newRow("a vote") << int(Way::Vote);
  QTest::newRow("a NewView") << int(Way::NewView);
  QTest::newRow("collected") << int(Way::Locked);
}

// The leader of view 1 has not seen the lock of view 0, and proposes another block. Planted: learn_lock() that
// takes each lock refuses it.
void TestAgreementProgress::a_late_lock_waits_for_the_next_view() {
  QFETCH(int, way);
  Bench bench(equal_units(4));
  const BlockPtr old = bus_block(1, false), present = bus_block(2, false);
  bench.propose_as_leader(0, old);
  for (const std::size_t i : {0u, 1u})
    bench.agreement->on_item(bench.other(i), bench.vote(bench.other(i), VoteStep::Prepare, 0, old->hash));
  bench.say(0, 2, 1);
  QCOMPARE(bench.view(), 1u);
  QCOMPARE(bench.propose_as_leader(1, present), Verdict::Taken);
  complete_lock(bench, static_cast<Way>(way), old);
  QVERIFY(!bench.agreement->memory().lock);
  find_all_right(bench);
  QCOMPARE(take_sent(bench).prepared, std::vector{present->hash});
  QVERIFY(!on_disk(bench).lock && on_disk(bench).prepared == present->hash);
  // A second time it costs no signature check.
  const int checked = bench.checks.checked;
  QCOMPARE(bench.show_lock(bench.prepares(3, 0, old), old), Verdict::Taken);
  QCOMPARE(bench.checks.checked, checked);
  // The next leader learns of it, and it binds.
  bench.say(0, 2, 2);
  QCOMPARE(bench.view(), 2u);
  QVERIFY(on_disk(bench).lock && on_disk(bench).lock->block == old->hash && on_disk(bench).lock->view == 0);
  const Sent sent = take_sent(bench);
  QCOMPARE(sent.to_leaders.size(), std::size_t(1));
  QVERIFY(sent.to_leaders[0].lock && sent.to_leaders[0].lock->block == old->hash);
  bench.propose_as_leader(2, present);
  find_all_right(bench);
  QVERIFY(take_sent(bench).prepared.empty());
}

void TestAgreementProgress::a_late_lock_counts_when_the_proposal_shows_it() {
  QFETCH(int, way);
  Bench bench(equal_units(4));
  const BlockPtr old = bus_block(1, false);
  bench.propose_as_leader(0, old);
  for (const std::size_t i : {0u, 1u})
    bench.agreement->on_item(bench.other(i), bench.vote(bench.other(i), VoteStep::Prepare, 0, old->hash));
  bench.say(0, 2, 1);
  complete_lock(bench, static_cast<Way>(way), old);
  QVERIFY(!bench.agreement->memory().lock);
  QCOMPARE(
      bench.agreement->on_item(bench.committee->leader(1), Proposal{1, old, bench.prepares(3, 0, old), {}}),
      Verdict::Taken);
  QVERIFY(on_disk(bench).lock && on_disk(bench).lock->block == old->hash);
  find_all_right(bench);
  QCOMPARE(take_sent(bench).prepared, std::vector{old->hash});
  // A proposal of the next view does not bind in this one.
  Bench early(equal_units(4));
  early.propose_as_leader(0, old);
  early.say(0, 2, 1);
  const BlockPtr present = bus_block(2, false);
  early.propose_as_leader(1, present);
  QCOMPARE(
      early.agreement->on_item(early.committee->leader(2), Proposal{2, old, early.prepares(3, 0, old), {}}),
      Verdict::Taken);
  find_all_right(early);
  QCOMPARE(take_sent(early).prepared, std::vector{present->hash});
  early.say(0, 2, 2);
  find_all_right(early);
  QCOMPARE(take_sent(early).prepared, std::vector{old->hash});
}

// Planted: learn_lock() that keeps all locks for the next view.
void TestAgreementProgress::the_lock_of_the_present_view_counts_at_once() {
  Bench bench(equal_units(4));
  const BlockPtr old = bus_block(1, false), present = bus_block(2, false);
  bench.propose_as_leader(0, old);
  bench.say(0, 2, 1);
  bench.propose_as_leader(1, present);
  find_all_right(bench);
  QCOMPARE(bench.show_lock(bench.prepares(3, 0, old), old), Verdict::Taken);
  QVERIFY(!bench.agreement->memory().lock);
  for (const std::size_t i : {0u, 1u, 2u})
    bench.agreement->on_item(bench.other(i), bench.vote(bench.other(i), VoteStep::Prepare, 1, present->hash));
  QCOMPARE(bench.agreement->memory().lock->view, 1u);
  QCOMPARE(take_sent(bench).committed, std::vector{present->hash});
  // The older lock is forgotten.
  bench.say(0, 2, 2);
  QCOMPARE(on_disk(bench).lock->block, present->hash);
}

// Planted: learn_lock() without its exception for leaders makes this one propose a block of its own.
void TestAgreementProgress::a_leader_takes_locks_until_it_proposes() {
  Bench bench(equal_units(4));
  const BlockPtr old = bus_block(1, false), newer = bus_block(2, false);
  bench.say(0, 2, 3);
  QVERIFY(bench.agreement->leads());
  QCOMPARE(bench.show_lock(bench.prepares(3, 0, old), old), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, old->hash);
  bench.say(0, 3, 3);
  bench.world.run_for(second);
  find_all_right(bench);
  const Sent sent = take_sent(bench);
  QCOMPARE(sent.proposals.size(), std::size_t(1));
  QCOMPARE(sent.proposals[0].block->hash, old->hash);
  QVERIFY(sent.proposals[0].justification && sent.proposals[0].justification->view == 0);
  QCOMPARE(bench.show_lock(bench.prepares(3, 2, newer), newer), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, old->hash);
}

// The slowest of four has the newest lock. Planted: lead() without the wait proposes another block.
void TestAgreementProgress::a_leader_waits_a_short_while_for_the_others() {
  const BlockPtr newest = bus_block(1, false);
  const Duration wait = bench_patience.first_view * 27 / 8 / bench_patience.others_part;  // in view 3
  for (const bool in_time : {true, false}) {
    Bench bench(equal_units(4));
    bench.say(0, 2, 3);
    QVERIFY(bench.agreement->leads());
    QCOMPARE(bench.asked_to_lead, 0);
    bench.world.run_for(wait / 2);
    QCOMPARE(bench.asked_to_lead, 0);
    if (in_time) {
      const Quorum lock = bench.prepares(3, 2, newest);
      bench.agreement->on_item(bench.other(2), NewView{bus_height, bus_previous, 3, lock, newest, {}});
    }
    bench.world.run_for(wait);
    find_all_right(bench);
    const Sent sent = take_sent(bench);
    QCOMPARE(sent.proposals.size(), in_time ? 1u : 0u);
    if (in_time) QCOMPARE(sent.proposals[0].block->hash, newest->hash);
    QCOMPARE(bench.asked_to_lead, in_time ? 0 : 1);
  }
}

// Nobody else can have a newer lock. Planted: lead() that always waits.
void TestAgreementProgress::a_leader_that_all_have_told_waits_no_longer() {
  Bench bench(equal_units(4));
  bench.say(0, 2, 3);
  QCOMPARE(bench.asked_to_lead, 0);
  bench.say(0, 3, 3);
  QCOMPARE(bench.asked_to_lead, 1);
  bench.world.run_for(second);
  QCOMPARE(bench.asked_to_lead, 1);
}

// Four of six. Planted as above.
void TestAgreementProgress::in_a_stall_a_leader_waits_for_more_than_the_stall_quorum() {
  Bench bench(equal_units(6));
  bench.agreement->stall();
  bench.say(0, 2, 5);
  bench.world.run_for(2 * second);
  QVERIFY(bench.agreement->leads());
  QCOMPARE(bench.asked_to_lead, 0);
  bench.say(0, 3, 5);
  QCOMPARE(bench.asked_to_lead, 0);
  bench.world.run_for(second / 10);
  QCOMPARE(bench.asked_to_lead, 0);
  bench.world.run_for(2 * second);
  QCOMPARE(bench.asked_to_lead, 1);
}

NS_TEST(TestAgreementProgress)
#include "test_agreement_progress.moc"
