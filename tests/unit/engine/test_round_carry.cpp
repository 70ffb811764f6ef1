// Work that is not in the anchor of a round is carried to the next one: all of it, and none of it twice.
#include <algorithm>
#include <cmath>

#include "core/crypto/hash.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/round_trainer_bench.h"
#include "tests/unit/rounds/fillable_spool.h"

using namespace neuroshard;                          // NOLINT
using namespace neuroshard::engine;                  // NOLINT
using namespace neuroshard::engine::testing_rounds;  // NOLINT

namespace {

class CountingSpool final : public Spool {
 public:
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    ++created;
    return memory_.create(bytes);
  }
  int created = 0;

 private:
  MemorySpool memory_;
};

// Counts the reads.
class ReadBytes final : public ByteSource {
 public:
  explicit ReadBytes(ByteSourcePtr bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    ++reads;
    return bytes_->read_at(offset, target);
  }
  mutable int reads = 0;

 private:
  const ByteSourcePtr bytes_;
};

}  // namespace

class TestRoundCarry : public QObject {
  Q_OBJECT
 private Q_SLOTS:
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

  // The model has them until its next step.
  void a_rest_needs_no_copy_of_the_weights() {
    TrainerBench b;
    const auto spool = std::make_shared<CountingSpool>();
    b.spool = spool;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    spool->created = 0;
    b.ask();
    b.train();
    QCOMPARE(spool->created, 1);  // the payload
    b.trainer->learner().go_on();
    QCOMPARE(b.train(2), 2);
    QCOMPARE(spool->created, 2);
    // Without a step between, nothing is carried.
    b.trainer->learner().start({2, anchor_of({7, 7, 7, 7}), Carry::Nothing, true});
    b.train();
    b.ask();
    b.train();
    b.trainer->learner().start({3, anchor_of({5, 5, 5, 5}), Carry::SinceBoundary, true});
    b.turn();
    QVERIFY((b.model.weights == Weights{5, 5, 5, 5}));
    QCOMPARE(spool->created, 3);
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

  // The anchor of a large model is gigabytes, and a full disk is tried again every moment.
  void an_anchor_that_waits_for_room_is_read_once() {
    TrainerBench b;
    const auto spool = std::make_shared<test::FillableSpool>();
    b.spool = spool;
    b.options.error_feedback_beta = 1.0f;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask();
    b.train();
    const rounds::Anchor next = anchor_of({10, 10, 10, 10});
    const auto bytes = std::make_shared<const ReadBytes>(next->bytes);
    const auto counted = std::make_shared<const rounds::OuterState>(rounds::OuterState{next->counts, bytes});
    spool->full = true;
    b.trainer->learner().start({2, counted, Carry::Nothing, false});
    QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    const int once = bytes->reads;
    QVERIFY(once > 0);
    for (int i = 0; i < 5; ++i) QVERIFY(b.turn() == RoundTrainer::Turn::Rest);
    QCOMPARE(bytes->reads, once);
    // Another anchor has another hash.
    const rounds::Anchor third = anchor_of({20, 20, 20, 20});
    b.trainer->learner().start({3, third, Carry::Nothing, false});
    spool->full = false;
    QCOMPARE(b.train(1), 1);
    QVERIFY((b.model.weights == Weights{19, 19, 19, 19}));
    const Hash256 hash = crypto::sha256(as_bytes(Span<const float>(test::weights_of(third))));
    QCOMPARE(b.model.noted.front().anchor, hash);
  }

  // A second encoding would put the delta into the buffer twice.
  void a_delta_is_given_again_when_training_opens_again() {
    TrainerBench b;
    b.options.error_feedback_beta = 1.0f;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask();
    b.train();
    QVERIFY(!b.boundaries.at(0)->batches.empty());
    b.trainer->detach();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.train(1);
    b.ask();
    b.train();
    QVERIFY((b.delta(1) == Weights{3, 3, 3, 3}));
    QCOMPARE(b.boundaries[1]->work.steps, 3u);
    QVERIFY(b.boundaries[1]->batches.empty());  // those of the other session
    // It did not count, so it is put back, once.
    b.trainer->learner().start({2, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask();
    b.train();
    QVERIFY((b.delta(2) == Weights{6, 6, 6, 6}));
    QVERIFY(!b.boundaries[2]->batches.empty());
  }

  // The payload is of three steps, and the model that carries its work has made one when it is given again.
  void work_after_a_delta_that_was_given_again_is_carried() {
    TrainerBench b;
    b.options.error_feedback_beta = 1.0f;
    b.make();
    QVERIFY(b.trainer->attach(b.model).ok());
    b.trainer->learner().start({1, anchor_of({0, 0, 0, 0}), Carry::Nothing, false});
    b.train();
    b.ask(rounds::AfterBoundary::TrainOn);
    b.train(1);
    b.trainer->detach();
    QVERIFY(b.trainer->attach(b.model).ok());
    QCOMPARE(b.train(1), 1);
    b.ask(rounds::AfterBoundary::TrainOn);
    QCOMPARE(b.train(2), 2);
    b.trainer->learner().start({2, anchor_of({-3, -3, -3, 9}), Carry::SinceBoundary, true});
    b.turn();
    QCOMPARE(b.trainer->learner().progress().steps, 2u);
    QVERIFY((b.model.weights == Weights{-5, -5, -5, 7}));
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
};

NS_TEST(TestRoundCarry)
#include "test_round_carry.moc"
