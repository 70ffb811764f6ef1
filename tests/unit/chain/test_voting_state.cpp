// The votes that a member may give: never two for one view, never one against its lock, whatever it learns between.
#include <QtTest>
#include <map>
#include <memory>

#include "core/base/rng.h"
#include "core/chain/detail/voting_state.h"
#include "tests/support/test_main.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT

namespace {

constexpr std::uint64_t state_height = 7;
const Hash256 state_previous{9};

Hash256 hash_of_block(std::uint8_t number) {
  return Hash256{number};
}

Lock lock_on(std::uint8_t block, std::uint32_t view) {
  auto prepares = std::make_shared<Quorum>();
  prepares->view = view;
  prepares->block = hash_of_block(block);
  return {prepares, nullptr, nullptr};
}

VotingState new_state(AgreementMemory memory = {}) {
  return VotingState(state_height, state_previous, std::move(memory));
}

}  // namespace

class TestVotingState : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void prepares_one_block_in_a_view();
  void prepares_the_block_of_its_lock_only();
  void a_newer_lock_takes_the_place_of_an_older_one();
  void a_late_lock_counts_from_the_next_view_on();
  void a_late_lock_gives_way_to_a_newer_one();
  void commits_once_to_a_lock_of_this_view();
  void a_restart_repeats_its_vote_and_gives_no_other();
  void memory_of_another_height_is_ignored();
  void no_two_votes_of_a_view_differ();
};

void TestVotingState::prepares_one_block_in_a_view() {
  VotingState state = new_state();
  QVERIFY(state.prepare(hash_of_block(1)));
  QVERIFY(state.has_prepared());
  QVERIFY(!state.prepare(hash_of_block(2)));
  QVERIFY(!state.prepare(hash_of_block(1)));
  QVERIFY(state.has_prepared_other(hash_of_block(2)) && !state.has_prepared_other(hash_of_block(1)));
  state.enter(1);
  QVERIFY(!state.has_prepared() && !state.has_prepared_other(hash_of_block(2)));
  QVERIFY(state.prepare(hash_of_block(2)));
}

void TestVotingState::prepares_the_block_of_its_lock_only() {
  VotingState state = new_state();
  QVERIFY(state.take(lock_on(1, 0)));
  state.enter(1);
  QVERIFY(!state.prepare(hash_of_block(2)));
  QVERIFY(state.prepare(hash_of_block(1)));
  QCOMPARE(*state.memory().prepared, hash_of_block(1));
}

void TestVotingState::a_newer_lock_takes_the_place_of_an_older_one() {
  VotingState state = new_state();
  state.enter(5);
  QVERIFY(!state.lock().prepares);
  QVERIFY(state.take(lock_on(1, 3)));
  QVERIFY(!state.take(lock_on(2, 3)));
  QVERIFY(!state.take(lock_on(2, 1)));
  QVERIFY(state.take(lock_on(2, 4)));
  QVERIFY(state.has_lock_of(hash_of_block(2)) && !state.has_lock_of(hash_of_block(1)));
  QVERIFY(state.has_lock_from(4) && !state.has_lock_from(5));
}

// A vote that comes late, to one member only, must not make it refuse the proposal of this view.
void TestVotingState::a_late_lock_counts_from_the_next_view_on() {
  VotingState state = new_state();
  state.take(lock_on(1, 0));
  state.enter(2);
  QVERIFY(state.take_late(lock_on(2, 1)));
  QVERIFY(state.has_late_lock());
  QVERIFY(state.has_lock_of(hash_of_block(1)) && state.has_lock_of(hash_of_block(2)));
  QCOMPARE(state.newest().prepares->block, hash_of_block(2));
  QCOMPARE(state.lock().prepares->block, hash_of_block(1));
  QVERIFY(state.prepare(hash_of_block(1)));
  state.enter(3);
  QVERIFY(!state.has_late_lock());
  QCOMPARE(state.lock().prepares->block, hash_of_block(2));
  QVERIFY(!state.prepare(hash_of_block(1)));
  QVERIFY(state.prepare(hash_of_block(2)));
}

void TestVotingState::a_late_lock_gives_way_to_a_newer_one() {
  VotingState state = new_state();
  state.enter(4);
  QVERIFY(state.take_late(lock_on(1, 2)));
  QVERIFY(!state.take_late(lock_on(2, 2)));
  QVERIFY(!state.take_late(lock_on(2, 1)));
  QVERIFY(state.take(lock_on(2, 1)));  // older than the one that waits, which still counts later
  QVERIFY(state.has_late_lock());
  QVERIFY(state.take(lock_on(3, 3)));  // the proposal of this view shows a newer one
  QVERIFY(!state.has_late_lock());
  state.enter(5);
  QCOMPARE(state.lock().prepares->block, hash_of_block(3));
}

void TestVotingState::commits_once_to_a_lock_of_this_view() {
  VotingState state = new_state();
  QVERIFY(!state.committable());
  state.take(lock_on(1, 0));
  QCOMPARE(*state.committable(), hash_of_block(1));
  state.commit();
  QVERIFY(!state.committable());
  state.enter(1);
  QVERIFY(!state.committable());  // the lock is of the view before
  state.take(lock_on(1, 1));
  QCOMPARE(*state.committable(), hash_of_block(1));
}

void TestVotingState::a_restart_repeats_its_vote_and_gives_no_other() {
  VotingState before = new_state();
  before.enter(3);
  QVERIFY(before.prepare(hash_of_block(1)));
  VotingState after = new_state(before.memory());
  QCOMPARE(after.view(), 3u);
  QVERIFY(!after.has_prepared());
  QVERIFY(!after.prepare(hash_of_block(2)));
  QVERIFY(after.prepare(hash_of_block(1)));
}

void TestVotingState::memory_of_another_height_is_ignored() {
  VotingState before = new_state();
  before.enter(3);
  before.prepare(hash_of_block(1));
  const VotingState higher(state_height + 1, state_previous, before.memory());
  const VotingState elsewhere(state_height, Hash256{8}, before.memory());
  for (const VotingState* state : {&higher, &elsewhere}) {
    QCOMPARE(state->view(), 0u);
    QVERIFY(!state->memory().prepared);
  }
  QCOMPARE(higher.memory().height, state_height + 1);
  QCOMPARE(elsewhere.memory().previous, Hash256{8});
}

// Whatever comes in whatever order, over restarts too.
void TestVotingState::no_two_votes_of_a_view_differ() {
  Rng rng(3);
  for (int run = 0; run < 300; ++run) {
    VotingState state = new_state();
    std::map<std::uint32_t, Hash256> prepared, committed, locks;
    for (int i = 0; i < 60; ++i) {
      const auto block = static_cast<std::uint8_t>(1 + rng.below(3));
      const auto view = static_cast<std::uint32_t>(rng.below(state.view() + 2));
      // Quorums of one view are for one block.
      const Hash256 locked = locks.emplace(view, hash_of_block(block)).first->second;
      const Lock lock = lock_on(locked[0], view);
      switch (rng.below(5)) {
        case 0: state.enter(state.view() + 1 + static_cast<std::uint32_t>(rng.below(2))); break;
        case 1:
          if (state.take(lock) && view > state.view()) state.enter(view);
          break;
        case 2:
          if (view < state.view()) state.take_late(lock);
          break;
        case 3: state = new_state(state.memory()); break;
        default:
          if (!state.prepare(hash_of_block(block))) break;
          QCOMPARE(prepared.emplace(state.view(), hash_of_block(block)).first->second, hash_of_block(block));
          if (state.lock().prepares) QCOMPARE(state.lock().prepares->block, hash_of_block(block));
      }
      if (const auto commit = state.committable()) {
        state.commit();
        QCOMPARE(committed.emplace(state.view(), *commit).first->second, *commit);
        QCOMPARE(*commit, locks.at(state.view()));
      }
      QVERIFY(!state.has_lock_from(state.view() + 1));
    }
  }
}

NS_TEST(TestVotingState)
#include "test_voting_state.moc"
