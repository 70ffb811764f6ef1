// Where the model is synchronised in fragments: one training, of which each fragment's node has its part.
#include "core/crypto/hash.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/round_trainer_bench.h"

using namespace neuroshard;                          // NOLINT
using namespace neuroshard::engine;                  // NOLINT
using namespace neuroshard::engine::testing_rounds;  // NOLINT

class TestRoundTrainerFragments : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void fragments_are_one_training_with_rounds_of_their_own() {
    Bench b(8, 2);
    QVERIFY(b.trainer->attach(b.model).ok());
    b.executor.run();
    QCOMPARE(b.facts.front().fragments.size(), std::size_t{2});
    QVERIFY((b.facts.front().states[0]->weights == Weights{10, 20}));
    QVERIFY((b.facts.front().states[1]->weights == Weights{30, 40}));
    b.start(0, {1, anchor_of({1, 2}), Carry::Nothing, false});
    QCOMPARE(b.train(), 0);  // the other has no anchor yet
    b.start(1, {1, anchor_of({3, 4}), Carry::Nothing, false});
    // The first ends in the middle of the second's round; trains on, while the others agree.
    QCOMPARE(b.train(), 4);
    QVERIFY(b.trainer->learner(0).ends_early() && !b.trainer->learner(1).ends_early());
    b.ask(0, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(), 4);
    QVERIFY((b.delta(0, 2) == Weights{4, 4}));
    QCOMPARE(b.trainer->learner(1).progress().steps, 8u);
    b.ask(1, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(), 4);  // no more than a round ahead of the first's anchor
    QVERIFY((b.delta(1, 2) == Weights{8, 8}));
    QVERIFY((b.model.weights == Weights{-11, -10, -9, -8}));
    // An anchor moves its own values only, and takes along what came since.
    b.start(0, {2, anchor_of({50, 60}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(1), 0);  // a whole round is carried: its delta is due
    QVERIFY((b.model.weights == Weights{42, 52, -9, -8}));
    QCOMPARE(b.model.schedule, std::uint64_t{12});
    QVERIFY(b.model.synced_at.empty());
    b.ask(0, rounds::AfterBoundary::TrainOn);
    b.start(1, {2, anchor_of({70, 80}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(1), 1);
    QVERIFY((b.model.weights == Weights{41, 51, 65, 75}));
    QCOMPARE(b.model.schedule, std::uint64_t{13});
    // A checkpoint has the anchors of all; it is due with the last one's.
    QVERIFY((b.model.synced_at == std::vector<std::uint64_t>{2}));
  }

  void a_restart_goes_on_in_the_round_of_each_fragment() {
    const auto first = anchor_of({1, 2}), second = anchor_of({3, 4});
    const auto hash = [](const rounds::Anchor& anchor) {
      return crypto::sha256(as_bytes(Span<const float>(anchor->weights)));
    };
    Bench b(8, 2);
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
    Bench c(8, 2);
    c.model.restored = {{4, hash(first), 5, 500}};
    QVERIFY(c.trainer->attach(c.model).ok());
    c.start(0, {4, first, Carry::Nothing, false});
    c.start(1, {4, second, Carry::Nothing, false});
    QCOMPARE(c.train(1), 1);
    QVERIFY((c.model.weights == Weights{0, 1, 2, 3}));
  }

  // Whatever brought their ends together, who begins all at once or stood still until all were closed: they
  // lie half a round apart again.
  void fragments_that_end_together_are_brought_apart() {
    Bench b(8, 2);
    b.model.fresh = false;
    QVERIFY(b.trainer->attach(b.model).ok());
    for (std::size_t f = 0; f < 2; ++f) b.start(f, {9, anchor_of({0, 0}), Carry::Nothing, false});
    QCOMPARE(b.train(), 4);
    QVERIFY(b.trainer->learner(0).ends_early());
    b.ask(0, rounds::AfterBoundary::TrainOn);
    // Both are closed, the second sooner than it should be.
    b.ask(1, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(1), 1);
    for (std::size_t f = 0; f < 2; ++f) b.start(f, {10, anchor_of({0, 0}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(), 3);
    QVERIFY(b.trainer->learner(1).ends_early() && !b.trainer->learner(0).ends_early());
    QCOMPARE(b.trainer->learner(1).progress().steps, 4u);
    b.ask(1, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(), 4);
    QCOMPARE(b.trainer->learner(0).progress().steps, 8u);
    b.ask(0, rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(1), 1);
    // And stay so, with whole rounds.
    for (std::size_t f = 0; f < 2; ++f) b.start(f, {11, anchor_of({0, 0}), Carry::SinceBoundary, true});
    QCOMPARE(b.train(), 3);
    QCOMPARE(b.trainer->learner(1).progress().steps, 8u);
    QVERIFY(!b.trainer->learner(1).ends_early());
  }

  // Each waiting for what another does not give because it waits, too: who rests gives what it has.
  void who_rests_for_one_fragment_gives_what_it_has_of_the_others() {
    for (const bool patient : {true, false}) {
      Bench b(40, 2);
      b.options.patience = patient ? std::chrono::hours(1) : Duration(0);
      b.make();
      b.model.fresh = false;
      QVERIFY(b.trainer->attach(b.model).ok());
      for (std::size_t f = 0; f < 2; ++f) b.start(f, {9, anchor_of({0, 0}), Carry::Nothing, false});
      QCOMPARE(b.train(), 20);
      b.ask(0, rounds::AfterBoundary::TrainOn);
      QCOMPARE(b.train(), 20);
      b.ask(1, rounds::AfterBoundary::TrainOn);
      QCOMPARE(b.train(), 20);  // the first's certificate does not come
      b.start(1, {10, anchor_of({0, 0}), Carry::Nothing, true});
      // Of the second there is nothing yet: a twentieth of a round is enough to count.
      QCOMPARE(b.train(), 2);
      QCOMPARE(b.trainer->learner(1).progress().steps, 2u);
      QVERIFY(b.trainer->learner(1).ends_early() == !patient);
      if (patient) continue;
      b.start(0, {10, anchor_of({0, 0}), Carry::Nothing, true});
      QCOMPARE(b.train(1), 1);
      QVERIFY(!b.trainer->learner(1).ends_early());  // it goes on
    }
  }

  void a_model_that_is_too_small_for_its_fragments_is_refused() {
    Bench b(8, 5);
    const auto attached = b.trainer->attach(b.model);
    QVERIFY(!attached.ok() && attached.error().code == ErrorCode::InvalidArgument);
    QVERIFY(attached.error().message.find("5 fragments") != std::string::npos);
  }
};

NS_TEST(TestRoundTrainerFragments)
#include "test_round_trainer_fragments.moc"
