// Error feedback over a restart: a node that is stopped or killed at any moment of a round
// contributes, from then on, the bytes that it would have contributed without that.
#include <QtTest>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/engine/round_memory.h"
#include "core/engine/round_trainer.h"
#include "tests/support/manual_executor.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT
using neuroshard::rounds::Carry;

namespace {

constexpr std::size_t values = 9000;
constexpr std::uint32_t inner_steps = 3;

// A step moves each weight by what follows from the weight, its place and the step's number: repeated from
// the same weights, it does the same.
struct Model final : RoundModel {
  std::vector<float> weights = std::vector<float>(values, 1.0f);
  Hash256 tokenizer{};
  std::vector<RoundPlace> kept{RoundPlace{}};
  std::uint64_t parameters() const override { return values; }
  const Hash256& tokenizer_hash() const override { return tokenizer; }
  Expected<void> read_weights(std::uint64_t first, Span<float> target) override {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first), target.size(), target.begin());
    return {};
  }
  Expected<void> write_weights(std::uint64_t first, Span<const float> source) override {
    std::copy(source.begin(), source.end(), weights.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  }
  bool fresh_moments() const override { return false; }
  void set_schedule(std::uint64_t step, double) override { schedule = step; }
  void synced() override {}
  void set_places(std::vector<RoundPlace> places, std::uint64_t) override { kept = std::move(places); }
  const std::vector<RoundPlace>& places() const override { return kept; }
  void step() {
    for (std::size_t i = 0; i < values; ++i)
      weights[i] -= 1e-2f * weights[i] * static_cast<float>((i * 7919 + schedule * 104729) % 97) / 97.0f;
  }
  std::uint64_t schedule = 0;
};

// A node's stop: a checkpoint has the training as it is, or as it was when the round began.
enum class Stop {
  Never,
  BeforeTheDelta,
  AfterTheDelta,
  BetweenMemoryAndVote,
  AfterTheCertificate,
  // Of the training alone: the program and the round's node go on.
  TrainingAfterTheDelta,
  TrainingBeforeTheVote
};

// One node alone: its own delta is the round's step, if it counts.
class Node {
 public:
  explicit Node(outer::CodecOptions codec) {
    options_.inner_steps = inner_steps;
    options_.codec = codec;
    options_.error_feedback_beta = 0.95f;
    options_.longest_rest = std::chrono::milliseconds(1);
    state_ = test::state_with(model_->weights);
    start_program();
  }

  // A round; what was contributed to it. counts: it gets into the certificate. old_checkpoint: a stop loses
  // what was trained since the round began.
  Bytes round(bool counts, Stop stop, bool old_checkpoint) {
    ++round_;
    trainer_->learner().start({round_, state_, Carry::Nothing, counted_});
    train(1);
    checkpoint_ = *model_;
    train(1);
    if (stop == Stop::BeforeTheDelta) restart(old_checkpoint);
    train(inner_steps);
    Bytes payload = contribute();
    if (stop == Stop::AfterTheDelta) {
      restart(old_checkpoint);  // the node has its vote: it does not ask for the delta again
      train(inner_steps);
    } else if (stop == Stop::BetweenMemoryAndVote) {
      restart(old_checkpoint);
      train(inner_steps);
      payload = contribute();
    } else if (stop == Stop::TrainingAfterTheDelta || stop == Stop::TrainingBeforeTheVote) {
      open_again(old_checkpoint);
      train(inner_steps);
      if (stop == Stop::TrainingBeforeTheVote) payload = contribute();
    }
    counted_ = counts;
    if (counts) {
      std::vector<float> next = test::weights_of(state_), delta(values);
      if (!outer::decode(options_.codec, payload, delta).ok()) qFatal("the payload can't be decoded");
      for (std::size_t i = 0; i < values; ++i) next[i] -= delta[i];
      state_ = test::state_with(next);
    }
    if (stop == Stop::AfterTheCertificate) {
      checkpoint_ = *model_;
      restart(old_checkpoint, false);
    }
    return payload;
  }
  const Bytes& memory() const { return memory_; }

 private:
  void start_program() {
    trainer_ = std::make_unique<RoundTrainer>(options_, spool_, clock_, logger_);
    trainer_->listen({&executor_, [](const RoundFacts&) {}, [] {}});
    if (!memory_.empty()) trainer_->learner().recall(in_memory(memory_));
    if (!trainer_->attach(*model_).ok()) qFatal("no model");
  }
  // in_round: the round's node begins the same round again.
  void restart(bool old_checkpoint, bool in_round = true) {
    auto kept = std::make_unique<Model>(old_checkpoint ? checkpoint_ : *model_);
    trainer_.reset();
    model_ = std::move(kept);
    start_program();
    if (in_round) trainer_->learner().start({round_, state_, Carry::Nothing, counted_});
  }
  // The same trainer gets the model of another session.
  void open_again(bool old_checkpoint) {
    auto kept = std::make_unique<Model>(old_checkpoint ? checkpoint_ : *model_);
    trainer_->detach();
    model_ = std::move(kept);
    if (!trainer_->attach(*model_).ok()) qFatal("no model");
  }
  void train(std::uint32_t most) {
    for (; most > 0 && trainer_->before_step().value() == RoundTrainer::Turn::Train; --most) {
      model_->step();
      trainer_->after_step(100);
      const rounds::TrainedWork work = trainer_->learner().progress();
      model_->kept.front().steps = work.steps;  // as the session's next checkpoint has it
      model_->kept.front().tokens = work.tokens;
    }
    executor_.run();
  }
  Bytes contribute() {
    std::optional<rounds::RoundLearner::Boundary> given;
    trainer_->learner().boundary(rounds::AfterBoundary::Rest,
                                 [&](auto boundary) { given = std::move(*boundary); });
    train(1);
    if (!given || !given->memory) qFatal("no delta was given");
    memory_ = test::bytes_of(given->memory);
    return test::bytes_of(given->payload);
  }

  SystemClock clock_;
  NullLogger logger_;
  testing::ManualExecutor executor_;
  RoundTrainerOptions options_;
  const std::shared_ptr<Spool> spool_ = std::make_shared<MemorySpool>();
  std::unique_ptr<Model> model_ = std::make_unique<Model>();
  Model checkpoint_;
  rounds::Anchor state_;
  std::unique_ptr<RoundTrainer> trainer_;
  Bytes memory_;
  std::uint64_t round_ = 0;
  bool counted_ = false;
};

}  // namespace

class TestRoundMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_stop_changes_no_contribution_data() {
    QTest::addColumn<int>("stop");
    QTest::addColumn<bool>("old_checkpoint");
    for (const auto& [stop, name] : {std::pair{Stop::BeforeTheDelta, "before the delta"},
                                     std::pair{Stop::AfterTheDelta, "after the delta"},
                                     std::pair{Stop::BetweenMemoryAndVote, "between memory and vote"},
                                     std::pair{Stop::AfterTheCertificate, "after the certificate"},
                                     std::pair{Stop::TrainingAfterTheDelta, "training, after the delta"},
                                     std::pair{Stop::TrainingBeforeTheVote, "training, before the vote"}})
      for (const bool old : {false, true})
        QTest::newRow(qPrintable(QString("%1, %2").arg(name, old ? "killed" : "stopped")))
            << static_cast<int>(stop) << old;
  }
  void a_stop_changes_no_contribution() {
    QFETCH(int, stop);
    QFETCH(bool, old_checkpoint);
    for (const outer::CodecOptions codec :
         {outer::CodecOptions{outer::Codec::TopK, 64}, outer::CodecOptions{outer::Codec::Int4, 64}}) {
      Node whole(codec), stopped(codec);
      for (int round = 0; round < 6; ++round) {
        const bool counts = round != 2;  // one is left out, and put back
        const Bytes expected = whole.round(counts, Stop::Never, false);
        QCOMPARE(stopped.round(counts, static_cast<Stop>(stop), old_checkpoint), expected);
      }
    }
  }

  // Without the memory it is another contribution: the test above can fail.
  void what_is_forgotten_is_missed() {
    const outer::CodecOptions codec{outer::Codec::TopK, 64};
    Node whole(codec);
    const Bytes first = whole.round(true, Stop::Never, false);
    const Bytes second = whole.round(true, Stop::Never, false);
    const auto memory = decode_round_memory(in_memory(whole.memory()));
    QVERIFY(memory.ok());
    QCOMPARE(test::bytes_of(memory->payload), second);
    QCOMPARE(memory->round, std::uint64_t{2});
    QCOMPARE(memory->work.steps, inner_steps);
    const Bytes buffer = test::bytes_of(memory->buffer);
    QVERIFY(std::any_of(buffer.begin(), buffer.end(), [](std::uint8_t byte) { return byte != 0; }));
    QVERIFY(first != second);
  }

  void damaged_memories_are_refused() {
    Node node({outer::Codec::Int4, 64});
    static_cast<void>(node.round(true, Stop::Never, false));
    const Bytes good = node.memory();
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{100}, good.size() - 1})
      QVERIFY(decode_round_memory(part_of(in_memory(good), 0, length)).error().code == ErrorCode::Corrupt);
    for (const std::size_t at : {std::size_t{0}, std::size_t{60}, std::size_t{68}, std::size_t{75},
                                 good.size() / 2, good.size() - 1}) {
      Bytes bad = good;
      bad[at] ^= 0x80;
      QVERIFY(decode_round_memory(in_memory(bad)).error().code == ErrorCode::Corrupt);
    }
  }

  // Of another model: it goes on without.
  void another_models_memory_is_not_used() {
    RoundMemory memory;
    memory.round = 1;
    memory.payload = in_memory({1, 2, 3});
    memory.buffer = zero_bytes(17 * sizeof(float));
    SystemClock clock;
    NullLogger logger;
    testing::ManualExecutor executor;
    RoundTrainerOptions options;
    options.inner_steps = 1;
    options.codec = {outer::Codec::TopK, 64};
    options.error_feedback_beta = 0.95f;
    RoundTrainer trainer(options, std::make_shared<MemorySpool>(), clock, logger);
    trainer.listen({&executor, [](const RoundFacts&) {}, [] {}});
    trainer.learner().recall(encode_round_memory(memory).value());
    Model model;
    QVERIFY(trainer.attach(model).ok());
    const rounds::Anchor state = test::state_with(model.weights);
    trainer.learner().start({2, state, Carry::Nothing, false});
    QVERIFY(trainer.before_step().value() == RoundTrainer::Turn::Train);
    QVERIFY(model.weights == test::weights_of(state));
  }
};

NS_TEST(TestRoundMemory)
#include "test_round_memory.moc"
