// The meeting point of outer rounds and training: what is put into the model and taken out of it at which
// moment, what is carried from anchor to anchor, and that nobody waits for the other for long.
#include <cmath>
#include <limits>
#include <thread>

#include "core/crypto/hash.h"
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

  void without_a_certificate_it_trains_on_and_carries_its_work() {
    TrainerBench b;
    b.options.most_rounds_alone = 3;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask();
    b.train();
    b.trainer->learner().go_on();
    QCOMPARE(b.train(2), 2);
    QCOMPARE(b.trainer->learner().progress().steps, 5u);
    // The part up to the boundary is in the new anchor, two steps are not.
    b.trainer->learner().start({2, anchor_of({-3, -3, -3, 9}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(1), 1);
    QVERIFY((b.model.weights == Weights{-6, -6, -6, 6}));
    QCOMPARE(b.trainer->learner().progress().steps, 3u);
    QCOMPARE(b.trainer->learner().progress().tokens, std::uint64_t{300});
    // Nothing of it is: all goes along. By itself it goes no further than three rounds.
    b.ask();
    b.train();
    QVERIFY((b.delta(1) == Weights{3, 3, 3, 3}));
    b.trainer->learner().go_on();
    QCOMPARE(b.train(), 6);
    b.trainer->learner().start({3, anchor_of({100, 100, 100, 100}), Carry::Everything, false});
    QCOMPARE(b.train(), 0);  // nine steps are more than a round's: they are asked for at once
    QVERIFY((b.model.weights == Weights{91, 91, 91, 91}));
    b.ask();
    b.train();
    QVERIFY((b.delta(2) == Weights{9, 9, 9, 9}));
    QCOMPARE(b.boundaries[2]->work.steps, 9u);
  }

  // Rounds that overlap: it trains on while the others agree, and the anchor takes what came since along.
  void trains_on_after_the_delta_where_rounds_overlap() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(), 3);
    b.ask(rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(2), 2);
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QVERIFY((b.delta(0) == Weights{3, 3, 3, 3}));
    b.trainer->learner().start({2, anchor_of({-3, -3, -3, 9}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(), 1);  // two of this round's three are done
    QVERIFY((b.model.weights == Weights{-6, -6, -6, 6}));
    b.ask(rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(), 3);  // no more than a round ahead
    QVERIFY((b.delta(1) == Weights{3, 3, 3, 3}));
    QCOMPARE(b.boundaries[1]->work.steps, 3u);
    QCOMPARE(b.progressed, 2);
    // A whole round is carried: the node hears at once that its delta can be made.
    b.trainer->learner().start({3, anchor_of({50, 50, 50, 50}), Carry::SinceBoundary, true});
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    b.executor.run();
    QCOMPARE(b.progressed, 3);
    QVERIFY((b.model.weights == Weights{47, 47, 47, 47}));
  }

  // A node that reaches its boundary first trains on and ends its next round with the others: else each
  // anchor would be staler for it for ever.
  void a_lead_is_made_up_for_in_the_next_round_data() {
    QTest::addColumn<int>("until_closed");  // steps after the boundary; -1: nobody says so
    QTest::addColumn<int>("next_round");
    QTest::newRow("together with the others") << 0 << 16;
    QTest::newRow("what is no lead") << 2 << 16;
    QTest::newRow("ahead") << 5 << 21;
    QTest::newRow("the certificate comes first") << -1 << 23;
  }
  void a_lead_is_made_up_for_in_the_next_round() {
    QFETCH(int, until_closed);
    QFETCH(int, next_round);
    TrainerBench b(16);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(), 16);
    b.ask_first(0, rounds::AfterBoundary::TrainOn);
    b.turn();
    const int before = b.train(std::max(0, until_closed));
    if (until_closed >= 0) b.trainer->learner().closed();
    QCOMPARE(b.train(7 - before), 7 - before);
    b.trainer->learner().start({2, anchor_of({0, 0, 0, 0}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(), next_round - 7);  // seven are carried
    QCOMPARE(b.trainer->learner().progress().steps, std::uint32_t(next_round));
    QCOMPARE(b.trainer->learner().extra_steps(), std::uint32_t(next_round - 16));
    // It is made up for: the one after it has its own length.
    b.ask(0, rounds::AfterBoundary::TrainOn);
    b.train(1);
    b.trainer->learner().start({3, anchor_of({0, 0, 0, 0}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(), 15);
  }

  // Put back into the buffer, it is in the next delta by that; carried as well it would count twice.
  void what_is_put_back_is_not_carried_too() {
    TrainerBench b;
    b.options.error_feedback_beta = 1.0f;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask();
    b.train();
    b.trainer->learner().go_on();
    QCOMPARE(b.train(2), 2);
    b.trainer->learner().start({2, anchor_of({100, 100, 100, 100}), Carry::Everything, false});
    QCOMPARE(b.train(), 1);
    QVERIFY((b.model.weights == Weights{97, 97, 97, 97}));
    b.ask();
    b.train();
    QVERIFY((b.delta(1) == Weights{6, 6, 6, 6}));  // three put back, three trained
  }

  // The training did not look between two starts: what is carried is what the first would have carried.
  void a_start_that_was_never_seen_carries_no_work_of_its_own() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train(2);
    b.trainer->learner().start({2, anchor_of({10, 10, 10, 10}), Carry::Nothing, true});
    b.trainer->learner().start({3, anchor_of({20, 20, 20, 20}), Carry::Everything, false});
    b.turn();
    QVERIFY((b.model.weights == Weights{20, 20, 20, 20}));
    b.train(2);
    b.trainer->learner().start({4, anchor_of({30, 30, 30, 30}), Carry::Everything, false});
    b.trainer->learner().start({5, anchor_of({40, 40, 40, 40}), Carry::Nothing, false});
    b.turn();
    QVERIFY((b.model.weights == Weights{38, 38, 38, 38}));
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

  void a_restart_goes_on_in_the_middle_of_the_round() {
    const auto anchor = anchor_of({1, 2, 3, 4});
    const Hash256 hash = crypto::sha256(as_bytes(Span<const float>(test::weights_of(anchor))));
    TrainerBench b;
    b.model.fresh = false;
    b.model.weights = {-1, 0, 1, 2};  // two steps on
    b.model.restored = {{4, hash, 2, 200}};
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({4, anchor, Carry::Nothing, false});
    QCOMPARE(b.train(), 1);
    b.ask();
    b.train();
    QVERIFY((b.delta(0) == Weights{3, 3, 3, 3}));
    QCOMPARE(b.boundaries[0]->work.tokens, std::uint64_t{300});
    // Of another round, or from another anchor: it begins with the network's.
    for (const RoundPlace& other : {RoundPlace{3, hash, 2, 200}, RoundPlace{4, Hash256{1}, 2, 200}}) {
      TrainerBench c;
      c.model.restored = {other};
      QVERIFY(c.trainer->attach(c.model).ok());
      c.trainer->learner().start({4, anchor, Carry::Nothing, false});
      c.turn();
      QVERIFY(c.model.weights == test::weights_of(anchor));
      QCOMPARE(c.trainer->learner().progress().steps, 0u);
    }
  }

  // A restore of a checkpoint, or "finish" and "contribute": the session is another one.
  void a_model_that_is_made_anew_takes_the_rounds_anchor() {
    TrainerBench b;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({7, 7, 7, 7}), Carry::Nothing, false});
    b.train(2);
    b.trainer->detach();
    QCOMPARE(b.trainer->learner().progress().steps, 0u);
    b.ask();  // nobody is there to answer yet
    b.executor.run();
    QVERIFY(b.boundaries.empty());
    CountingModel other;
    QVERIFY(b.trainer->attach(other).ok());
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);  // its boundary is given: nothing was trained
    QVERIFY((other.weights == Weights{7, 7, 7, 7}));
    b.executor.run();
    QCOMPARE(b.boundaries.size(), std::size_t{1});
    QCOMPARE(b.boundaries[0]->work.steps, 0u);
  }

  void what_a_sparse_codec_leaves_out_is_sent_later_and_comes_back_when_it_does_not_count() {
    for (const bool counted : {true, false}) {
      TrainerBench b;
      b.options.codec = {outer::Codec::TopK, 1024};  // one of these four values
      b.options.error_feedback_beta = 1.0f;
      b.make();
      QVERIFY(b.trainer->attach(b.model).ok());
      b.trainer->learner().start({1, anchor_of({1, 2, 4, 100}), Carry::Nothing, false});
      b.turn();
      b.model.weights = {0, 0, 0, 0};
      for (int i = 0; i < 3; ++i) b.trainer->after_step(1);
      b.ask();
      b.train();
      const Weights first = b.delta(0);
      QVERIFY(first[3] > 50 && first[2] == 0);
      b.trainer->learner().start({2, anchor_of({0, 0, 0, 0}), Carry::Nothing, counted});
      b.turn();
      for (int i = 0; i < 3; ++i) b.trainer->after_step(1);
      b.ask();
      b.train();
      const Weights second = b.delta(1);
      if (counted)
        QVERIFY(second[3] == 0 || std::abs(second[3]) < 50);
      else
        QVERIFY(second[3] > 50);
    }
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

  // A start from another thread ends the rest at once.
  // The session makes its model again with the network's tokenizer; the listener gets the states of that one, too.
  void asks_for_a_model_with_the_networks_tokenizer() {
    TrainerBench bench;
    bench.model.tokenizer[0] = 1;
    QVERIFY(bench.trainer->attach(bench.model).ok());
    bench.executor.run();
    bench.start(0, {3, anchor_of({1, 2, 3, 4})});
    QCOMPARE(bench.train(2), 2);
    bench.trainer->want_tokenizer(Hash256{1});
    QVERIFY(bench.turn() == RoundTrainer::Turn::Train);  // it has that one
    bench.trainer->want_tokenizer(Hash256{2});
    QVERIFY(bench.turn() == RoundTrainer::Turn::OtherModel);
    QCOMPARE(*bench.trainer->wanted_model().tokenizer, Hash256{2});

    // Nobody gave it: the model is as before, and is not asked again at once.
    bench.trainer->detach();
    QVERIFY(bench.trainer->attach(bench.model).ok());
    bench.executor.run();
    QVERIFY(bench.facts.back().states.empty());
    QVERIFY(bench.turn() != RoundTrainer::Turn::OtherModel);

    // With it, the model waits for an anchor of its own.
    bench.trainer->detach();
    bench.model.tokenizer[0] = 2;
    QVERIFY(bench.trainer->attach(bench.model).ok());
    bench.executor.run();
    QCOMPARE(bench.facts.back().tokenizer, Hash256{2});
    QCOMPARE(bench.facts.back().states.size(), std::size_t{1});
    QVERIFY(bench.turn() == RoundTrainer::Turn::Rest);
    bench.start(0, {3, anchor_of({1, 2, 3, 4})});
    QVERIFY(bench.turn() == RoundTrainer::Turn::Train);
  }

  // The rounds get the states of the other part, which waits for an anchor of its own.
  void asks_for_a_model_of_another_part() {
    TrainerBench b;
    b.options.parts = {rounds::Fragment{0, 0, 4, 3}, rounds::Fragment{1, 4, 4, 3}};
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.facts.back().own_part, 0u);
    b.start(0, {3, anchor_of({1, 2, 3, 4})});
    QCOMPARE(b.train(2), 2);
    b.trainer->want_part(0);
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);  // it has that one
    b.trainer->want_part(1);
    QVERIFY(b.turn() == RoundTrainer::Turn::OtherModel);
    QVERIFY(b.trainer->wanted_model().part == 1u);
    b.trainer->detach();
    b.model.own_part = 1;
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.facts.back().own_part, 1u);
    QVERIFY(b.facts.back().states.size() == 2 && b.facts.back().states[1] && !b.facts.back().states[0]);
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    b.start(0, {4, anchor_of({1, 2, 3, 4})});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
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
