// A model that is synchronised in fragments: one training, and a row of the chain for each fragment.
#include "core/crypto/hash.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/round_trainer_bench.h"

using namespace neuroshard;                          // NOLINT
using namespace neuroshard::engine;                  // NOLINT
using namespace neuroshard::engine::testing_rounds;  // NOLINT

class TestRoundTrainerFragments : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rows_close_in_turn() {
    TrainerBench b(8, 2);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.facts.front().fragments.size(), std::size_t{2});
    QVERIFY((test::weights_of(b.facts.front().states[0]) == Weights{10, 20}));
    QVERIFY((test::weights_of(b.facts.front().states[1]) == Weights{30, 40}));
    b.start(0, {1, anchor_of({1, 2}), Carry::Nothing, false});
    QCOMPARE(b.train(), 0);  // the other has no anchor yet
    b.start(1, {1, anchor_of({3, 4}), Carry::Nothing, false});
    // Round 1 closes the second row, after half of the steps.
    QCOMPARE(b.train(4), 4);
    QVERIFY(b.trainer->learner(1).ends_early() && !b.trainer->learner(0).ends_early());
    b.ask(1, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(1), 1);
    b.trainer->learner(1).closed();
    QVERIFY((b.delta(0, 2) == Weights{4, 4}));
    QCOMPARE(b.train(3), 3);
    // An anchor changes the values of its row only, and carries the steps since the boundary.
    b.start(1, {2, anchor_of({70, 80}), Carry::SinceBoundary, true});
    b.ask(0, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(1), 1);
    b.trainer->learner(0).closed();
    QVERIFY((b.delta(1, 2) == Weights{8, 8}));
    QVERIFY((b.model.weights == Weights{-8, -7, 65, 75}));
    QCOMPARE(b.model.schedule, std::uint64_t{9});
    // A checkpoint has the anchors of all rows; it is due with the last row's.
    QVERIFY((b.model.synced_at == std::vector<std::uint64_t>{2}));
    // Round 3 closes the second row again: eight steps after its first boundary.
    QCOMPARE(b.train(3), 3);
    QCOMPARE(b.trainer->learner(1).progress().steps, 8u);
    QVERIFY(!b.trainer->learner(1).ends_early());
  }

  // The rows of later rounds train on meanwhile; a row rests a whole round after its own boundary.
  void a_late_result_stops_training_after_a_round_more() {
    TrainerBench b(8, 2);
    b.model.fresh = false;
    QVERIFY(b.trainer->attach(b.model).ok());
    for (std::size_t f = 0; f < 2; ++f) b.start(f, {1, anchor_of({0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(4), 4);
    b.ask(1, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(), 8);
    b.start(1, {2, anchor_of({0, 0}), Carry::SinceBoundary, true});
    QVERIFY(b.train() > 0);
  }

  // A node that joins before round 9 has fewer steps of the row that this round closes.
  void who_joins_later_has_the_steps_of_the_open_rounds() {
    TrainerBench b(8, 2);
    b.model.fresh = false;
    QVERIFY(b.trainer->attach(b.model).ok());
    for (std::size_t f = 0; f < 2; ++f) b.start(f, {9, anchor_of({0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(4), 4);
    QVERIFY(b.trainer->learner(1).ends_early() && !b.trainer->learner(0).ends_early());
    QCOMPARE(b.model.schedule, std::uint64_t{8 * 4 + 4});
  }

  void a_restart_goes_on_in_the_round_of_each_fragment() {
    const auto first = anchor_of({1, 2}), second = anchor_of({3, 4});
    const auto hash = [](const rounds::Anchor& anchor) {
      return crypto::sha256(as_bytes(Span<const float>(test::weights_of(anchor))));
    };
    TrainerBench b(8, 2);
    b.model.fresh = false;
    b.model.weights = {-4, -3, 2, 3};
    b.model.restored = {{4, hash(first), 5, 500}, {3, hash(second), 1, 100}};
    QVERIFY(b.trainer->attach(b.model).ok());
    // The second's round was over meanwhile: that one begins with its anchor, at a time of its own.
    b.start(0, {4, first, Carry::Nothing, false});
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    QVERIFY((b.model.noted == std::vector<RoundPlace>{{4, hash(first), 5, 500}, {3, hash(second), 1, 100}}));
    b.start(1, {4, anchor_of({7, 7}), Carry::Nothing, true});
    QCOMPARE(b.train(1), 1);
    QVERIFY((b.model.weights == Weights{-5, -4, 6, 6}));
    QCOMPARE(b.trainer->learner(0).progress().steps, 6u);
    QCOMPARE(b.trainer->learner(0).progress().tokens, std::uint64_t{600});
    QCOMPARE(b.trainer->learner(1).progress().steps, 1u);
    QCOMPARE(b.model.noted.size(), std::size_t{2});
    // Of a network that had another number of fragments: nothing of it is taken.
    TrainerBench c(8, 2);
    c.model.restored = {{4, hash(first), 5, 500}};
    QVERIFY(c.trainer->attach(c.model).ok());
    c.start(0, {4, first, Carry::Nothing, false});
    c.start(1, {4, second, Carry::Nothing, false});
    QCOMPARE(c.train(1), 1);
    QVERIFY((c.model.weights == Weights{0, 1, 2, 3}));
  }

  // The model here is the second of three parts; the rounds hear of all of them.
  void a_part_is_one_row_of_several() {
    TrainerBench b(8);
    b.options.parts = {{0, 0, 100, 8}, {1, 100, 4, 8}, {2, 104, 50, 8}};
    b.model.own_part = 1;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.trainer->fragments(), std::size_t{1});
    const RoundFacts& facts = b.facts.front();
    QCOMPARE(facts.fragments.size(), std::size_t{3});
    QCOMPARE(facts.states.size(), std::size_t{3});
    QVERIFY(!facts.states[0] && !facts.states[2]);
    QVERIFY((test::weights_of(facts.states[1]) == Weights{10, 20, 30, 40}));
    b.start(0, {1, anchor_of({1, 2, 3, 4}), Carry::Nothing, false});
    QCOMPARE(b.train(3), 3);
    QVERIFY((b.model.weights == Weights{-2, -1, 0, 1}));
    b.ask(rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(2), 2);
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QCOMPARE(b.boundaries.front()->work.steps, 3u);
    b.start(0, {2, anchor_of({0, 0, 0, 0}), Carry::SinceBoundary, true});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
    QVERIFY((b.model.weights == Weights{-2, -2, -2, -2}));  // the two steps since the boundary
  }

  void a_model_that_is_too_small_for_its_fragments_is_refused() {
    TrainerBench b(8, 5);
    const auto attached = b.trainer->attach(b.model);
    QVERIFY(!attached.ok() && attached.error().code == ErrorCode::InvalidArgument);
    QVERIFY(attached.error().message.find("5 fragments") != std::string::npos);
  }
};

NS_TEST(TestRoundTrainerFragments)
#include "test_round_trainer_fragments.moc"
