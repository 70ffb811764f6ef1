// The meeting point of outer rounds and training: what is put into the model and taken out of it at which
// moment, and that nobody waits for the other for long.
#include <cmath>
#include <limits>
#include <thread>

#include "core/train/schedule.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/round_trainer_bench.h"

using namespace neuroshard;                          // NOLINT
using namespace neuroshard::engine;                  // NOLINT
using namespace neuroshard::engine::testing_rounds;  // NOLINT

class TestRoundTrainer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_model_hears_the_beacon_and_gives_the_batches_of_the_work() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false, Hash256{9}});
    b.train();
    QVERIFY((b.model.begun == std::vector<std::pair<std::uint64_t, Hash256>>{{1, Hash256{9}}}));
    b.ask(rounds::AfterBoundary::TrainOn);
    b.train(2);
    QVERIFY((b.boundaries.at(0)->batches == Bytes{3}));
    // The steps after the boundary are in the next delta, and so are their batches.
    b.trainer->learner().start({2, anchor_of({1, 1, 1, 1}), Carry::SinceBoundary, true, Hash256{8}});
    b.train();
    b.ask();
    b.train();
    QVERIFY(
        (b.boundaries.at(1)->batches == Bytes{static_cast<std::uint8_t>(b.boundaries.at(1)->work.steps)}));
    QVERIFY(b.model.begun.back().first == 2 && b.model.begun.back().second == Hash256{8});
  }

  // Of a large model, copies are made anew once for an anchor, not once for each slice of it.
  void the_model_hears_when_an_anchor_is_written() {
    TrainerBench b;
    b.model.weights.resize(2 * RoundTrainer::slice_values + 1);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of(b.model.weights), Carry::Nothing});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
    QCOMPARE(b.model.writes, 3);
    QCOMPARE(b.model.written, 1);
  }

  // No message that a full queue could drop.
  void the_view_says_that_the_model_has_no_room() {
    TrainerBench b;
    QVERIFY(!b.trainer->view().lacks_memory);
    b.trainer->lacks_memory();
    QVERIFY(b.trainer->view().lacks_memory && b.trainer->view().lacks_memory);
    QVERIFY(b.trainer->attach(b.model).ok());
    QVERIFY(!b.trainer->view().lacks_memory);
  }

  void rests_until_it_has_an_anchor() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.facts.size(), std::size_t{1});
    QCOMPARE(b.facts.front().states.size(), std::size_t{1});
    QVERIFY((test::weights_of(b.facts.front().states.front()) == Weights{10, 20, 30, 40}));
    QVERIFY((outer::read_all(b.facts.front().states.front()->momentum()).value() == Weights{0, 0, 0, 0}));
    QCOMPARE(b.train(), 0);
    QVERIFY(b.trainer->view().resting);
    QVERIFY(b.trainer->view().rested > Duration(0));
  }

  void trains_h_steps_from_the_anchor_gives_the_delta_and_rests() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({1, 2, 3, 4}), Carry::Nothing, false});
    QCOMPARE(b.train(), 3);
    QCOMPARE(b.progressed, 1);
    QVERIFY((b.model.weights == Weights{-2, -1, 0, 1}));
    QCOMPARE(b.trainer->learner().progress().steps, 3u);
    QCOMPARE(b.trainer->learner().progress().tokens, std::uint64_t{300});
    b.ask();
    QCOMPARE(b.train(), 0);
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QVERIFY((b.delta(0) == Weights{3, 3, 3, 3}));
    QCOMPARE(b.boundaries[0]->work.steps, 3u);
    QCOMPARE(b.boundaries[0]->work.tokens, std::uint64_t{300});
    // The next anchor: the work is in it.
    b.trainer->learner().start({2, anchor_of({5, 5, 5, 5}), Carry::Nothing, true});
    QCOMPARE(b.trainer->learner().progress().steps, 0u);  // before the training has looked, too
    QCOMPARE(b.train(1), 1);
    QVERIFY((b.model.weights == Weights{4, 4, 4, 4}));
    // Worth a checkpoint; what everybody begins with is not.
    QVERIFY((b.model.synced_at == std::vector<std::uint64_t>{2}));
  }

  // With lr 1 and mu 0 the next anchor is what the only worker has: nothing moves.
  void one_worker_reproduces_itself() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    Weights anchor{0.1f, -0.3f, 1e-3f, 7.7f};
    b.trainer->learner().start({1, anchor_of(anchor), Carry::Nothing, false});
    b.train();
    const Weights trained = b.model.weights;
    b.ask();
    b.train();
    const Weights d = b.delta(0);
    for (std::size_t i = 0; i < anchor.size(); ++i) anchor[i] -= d[i];
    b.trainer->learner().start({2, anchor_of(anchor), Carry::Nothing, true});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
    for (std::size_t i = 0; i < anchor.size(); ++i)
      QVERIFY(std::abs(b.model.weights[i] - trained[i]) <= 1e-6f * std::abs(trained[i]));
  }

  void a_slow_node_gives_what_it_has() {
    TrainerBench b(10);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(4), 4);
    b.ask();
    QCOMPARE(b.train(), 0);  // rests, although H is far
    QCOMPARE(b.boundaries[0]->work.steps, 4u);
    QVERIFY((b.delta(0) == Weights{4, 4, 4, 4}));
  }

  void an_asked_boundary_is_answered_when_the_round_is_over() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train(1);
    b.ask();
    b.trainer->learner().start({2, anchor_of({5, 5, 5, 5}), Carry::Nothing, false});
    b.executor.run();
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QVERIFY(b.boundaries[0].error().code == ErrorCode::Cancelled);
  }

  void follows_the_schedule_of_the_network() {
    TrainerBench b(10);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.turn();
    QCOMPARE(b.model.schedule, std::uint64_t{1});
    QCOMPARE(b.model.factor, 1.0);  // everybody begins here: the schedule has its own warm-up
    TrainerBench late(10);
    QVERIFY(late.trainer->attach(late.model).ok());
    late.trainer->learner().start({8, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    for (int i = 1; i <= 10; ++i) {
      QCOMPARE(late.train(1), 1);
      QCOMPARE(late.model.schedule, std::uint64_t(70 + i));
      QCOMPARE(late.model.factor, train::rewarm_factor(static_cast<std::uint64_t>(i)));
    }
    late.model.fresh = false;
    late.trainer->learner().start({9, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(late.train(1), 1);  // goes on warming up beyond the round
    QCOMPARE(late.model.factor, train::rewarm_factor(11));
    TrainerBench back(10);
    back.model.fresh = false;  // moments of a checkpoint
    QVERIFY(back.trainer->attach(back.model).ok());
    back.trainer->learner().start({8, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    back.turn();
    QCOMPARE(back.model.factor, 1.0);
  }

  // The moments of a checkpoint from within the warm-up are still young.
  void the_warm_up_goes_on_when_training_opens_again() {
    TrainerBench b(10);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({8, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(5), 5);
    QCOMPARE(b.model.since_noted, std::uint64_t{5});
    b.model.fresh = false;
    b.model.since_restored = b.model.since_noted + 1;  // the session counts the step
    b.trainer->detach();
    QVERIFY(b.trainer->attach(b.model).ok());
    QCOMPARE(b.train(1), 1);
    QCOMPARE(b.model.factor, train::rewarm_factor(6));
    QCOMPARE(b.model.since_noted, std::uint64_t{6});
  }

  void a_model_that_can_not_be_written_is_an_error() {
    TrainerBench b;
    b.model.broken = true;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    const auto turn = b.trainer->before_step();
    QVERIFY(!turn.ok());
    QVERIFY(turn.error().code == ErrorCode::Unavailable);
  }

  void numbers_that_are_not_finite_are_told_and_not_sent() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.model.weights[1] = std::numeric_limits<float>::quiet_NaN();
    b.ask();
    b.train();
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QVERIFY(!b.boundaries[0].ok());
  }

  // Of a network whose members hold parts: those that are behind need this node's part.
  void a_part_assists_where_a_whole_model_rests() {
    TrainerBench b;
    b.options.parts = {rounds::Fragment{0, 0, 2, 3}, rounds::Fragment{1, 2, 4, 3}};
    b.model.own_part = 1;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);  // before its first anchor: its weights are of no use
    b.start(0, {1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(), 3);
    QVERIFY(b.turn() == RoundTrainer::Turn::Assist);
    // The steps for others count as its own, also in the next round.
    for (int i = 0; i < 2; ++i) {
      QVERIFY(b.turn() == RoundTrainer::Turn::Assist);
      for (float& w : b.model.weights) w -= 1;
      b.trainer->after_step(100);
    }
    QCOMPARE(b.trainer->view().work.steps, std::uint32_t{5});
    QVERIFY(b.trainer->view().resting);
    b.ask(rounds::AfterBoundary::TrainOn);
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
    b.executor.run();
    QCOMPARE(b.delta(0), (Weights{5, 5, 5, 5}));
  }

  // A start from another thread ends the rest at once.
  void a_start_wakes_the_training() {
    TrainerBench b;
    b.options.longest_rest = std::chrono::minutes(5);
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    std::thread node([&] {
      b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    });
    const bool trains = b.turn() == RoundTrainer::Turn::Train;
    node.join();
    QVERIFY(trains);
  }
};

NS_TEST(TestRoundTrainer)
#include "test_round_trainer.moc"
