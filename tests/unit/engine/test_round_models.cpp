// The training of a round gets another model: of a checkpoint, with the network's tokenizer, or of another part.
#include "core/crypto/hash.h"
#include "tests/support/busy_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/round_trainer_bench.h"

using namespace neuroshard;                          // NOLINT
using namespace neuroshard::engine;                  // NOLINT
using namespace neuroshard::engine::testing_rounds;  // NOLINT

using testing::BusyExecutor;

class TestRoundModels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
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

  void a_listener_whose_queue_was_full_hears_of_the_model_later() {
    TrainerBench b;
    BusyExecutor busy(2);
    b.trainer->listen({&busy, [&b](const RoundFacts& f) { b.facts.push_back(f); }, [] {}});
    QVERIFY(b.trainer->attach(b.model).ok());
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);  // refused again
    busy.manual.run();
    QVERIFY(b.facts.empty());
    for (int i = 0; i < 3; ++i) QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    busy.manual.run();
    QCOMPARE(b.facts.size(), std::size_t{1});  // once
    QCOMPARE(b.facts.front().states.size(), std::size_t{1});
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
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
    // The listener of the rounds was not called yet, so this anchor is of the other part.
    b.start(0, {3, anchor_of({9, 9, 9, 9, 9})});
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    b.executor.run();
    QCOMPARE(b.facts.back().own_part, 1u);
    QVERIFY(b.facts.back().states.size() == 2 && b.facts.back().states[1] && !b.facts.back().states[0]);
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    b.start(0, {4, anchor_of({1, 2, 3, 4})});
    QVERIFY(b.turn() == RoundTrainer::Turn::Train);
  }
};

NS_TEST(TestRoundModels)
#include "test_round_models.moc"
