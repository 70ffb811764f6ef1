// The inner loop over a fake stage: every token once and in order, one optimizer step, and all or nothing
// when a person stops it, memory runs out or numbers go wrong.
#include <QtTest>
#include <numeric>

#include "core/train/evaluate.h"
#include "core/train/inner_loop.h"
#include "tests/support/test_main.h"
#include "tests/unit/train/fake_stage.h"

using neuroshard::CancelSource;
using neuroshard::CancelToken;
using neuroshard::ErrorCode;
using neuroshard::Expected;
using neuroshard::ManualClock;
using neuroshard::test::FakeStage;
namespace compute = neuroshard::compute;
namespace train = neuroshard::train;

namespace {

// Counts warnings: what a person would find in the log.
class CountingLogger final : public neuroshard::Logger {
 public:
  int warnings = 0;
  void write(const neuroshard::LogRecord& record) override {
    if (record.level == neuroshard::LogLevel::Warning) ++warnings;
  }
};

// `sequences` × `length` tokens 0, 1, 2, …; each target is the token + 1, the last of every sequence has
// none.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
  std::uint32_t sequences, length;
  Batch(std::uint32_t s, std::uint32_t l) : tokens(s * l), targets(s * l), sequences(s), length(l) {
    std::iota(tokens.begin(), tokens.end(), 0);
    for (std::uint32_t i = 0; i < s * l; ++i) targets[i] = (i + 1) % l == 0 ? -1 : tokens[i] + 1;
  }
  train::BatchView view() const { return {sequences, length, tokens.data(), targets.data()}; }
};

struct Fixture {
  FakeStage stage;
  ManualClock clock;
  CountingLogger logger;
  train::InnerLoop loop;
  explicit Fixture(std::uint32_t micro_batch) : loop(stage, clock, logger, micro_batch) {}
  Expected<train::InnerStep> step(const Batch& batch, const CancelToken& cancel = {}) {
    compute::StepOptions options;
    options.learning_rate = 0.5;
    options.step = 1;
    return loop.step(batch.view(), options, cancel);
  }
};

int count(const FakeStage& stage, const std::string& call) {
  return static_cast<int>(std::count(stage.calls.begin(), stage.calls.end(), call));
}

}  // namespace

class TestInnerLoop : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_token_once_and_in_order();
  void means_do_not_depend_on_the_cut();
  void stop_between_micro_batches();
  void stop_before_the_first();
  void out_of_memory_halves_and_redoes_data();
  void out_of_memory_halves_and_redoes();
  void out_of_memory_with_one_sequence();
  void not_finite_loss();
  void not_finite_gradient();
  void empty_batches();
  void time_is_split();
  void held_before_the_update();
  void evaluation();
  void evaluation_adapts_to_memory();
};

void TestInnerLoop::every_token_once_and_in_order() {
  Fixture f(3);
  const Batch batch(8, 5);
  std::vector<std::int32_t> seen;
  // The fake clears its record when it steps; look just before that, at the last forward pass.
  int forwards = 0;
  f.stage.on_forward = [&] {
    if (++forwards == 3) seen = f.stage.seen;
  };
  const auto result = f.step(batch);
  QVERIFY(result.ok());
  QCOMPARE(f.stage.calls, (std::vector<std::string>{"forward 3", "backward", "forward 3", "backward",
                                                    "forward 2", "backward", "step 32"}));
  QCOMPARE(seen, std::vector<std::int32_t>(batch.tokens.begin(), batch.tokens.begin() + 30));
  QCOMPARE(result->tokens, std::uint64_t{40});
  QCOMPARE(result->target_tokens, std::uint64_t{32});
  QCOMPARE(result->micro_batches, 3u);
  QCOMPARE(result->micro_batch, 3u);
  // Mean of the tokens that have a target, and of the targets (the gradient): by hand from the sums.
  double loss = 0, gradient = 0;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    if (batch.targets[i] < 0) continue;
    loss += batch.tokens[i];
    gradient += batch.targets[i];
  }
  QCOMPARE(result->loss, loss / 32);
  QCOMPARE(result->balance, 1.5);
  QCOMPARE(result->z, 0.25);
  QCOMPARE(result->gradient_norm, gradient / 32);
  QCOMPARE(f.stage.weight, 1.0 - 0.5 * gradient / 32);
  QCOMPARE(f.stage.steps, std::uint64_t{1});
}

void TestInnerLoop::means_do_not_depend_on_the_cut() {
  const Batch batch(7, 4);
  double loss = 0, weight = 0;
  for (std::uint32_t micro = 1; micro <= 9; ++micro) {
    Fixture f(micro);
    const auto result = f.step(batch);
    QVERIFY(result.ok());
    QCOMPARE(result->micro_batches, (7 + std::min(micro, 7u) - 1) / std::min(micro, 7u));
    if (micro == 1) {
      loss = result->loss;
      weight = f.stage.weight;
    }
    QCOMPARE(result->loss, loss);
    QCOMPARE(f.stage.weight, weight);
  }
}

void TestInnerLoop::stop_between_micro_batches() {
  Fixture f(2);
  CancelSource source;
  int forwards = 0;
  f.stage.on_forward = [&] {
    if (++forwards == 2) source.cancel();
  };
  const auto result = f.step(Batch(8, 4), source.token());
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::Cancelled);
  QCOMPARE(forwards, 2);  // the running micro-batch ended, no other began
  QCOMPARE(f.stage.steps, std::uint64_t{0});
  QCOMPARE(f.stage.weight, 1.0);
  QCOMPARE(f.stage.gradient, 0.0);
  QVERIFY(f.stage.kept.empty());
}

void TestInnerLoop::stop_before_the_first() {
  Fixture f(2);
  CancelSource source;
  source.cancel();
  QCOMPARE(f.step(Batch(8, 4), source.token()).error().code, ErrorCode::Cancelled);
  QCOMPARE(count(f.stage, "forward 2"), 0);
}

void TestInnerLoop::out_of_memory_halves_and_redoes_data() {
  QTest::addColumn<bool>("in_backward");
  QTest::newRow("forward") << false;
  QTest::newRow("backward") << true;
}

void TestInnerLoop::out_of_memory_halves_and_redoes() {
  QFETCH(bool, in_backward);
  const Batch batch(8, 4);
  Fixture roomy(2);
  const auto expected = roomy.step(batch);

  Fixture f(8);
  f.stage.fits = 3;
  f.stage.fail_in_backward = in_backward;
  const auto result = f.step(batch);
  QVERIFY(result.ok());
  QCOMPARE(result->retries, 2u);  // 8 → 4 → 2
  QCOMPARE(result->micro_batch, 2u);
  QCOMPARE(f.loop.micro_batch(), 2u);
  QCOMPARE(result->target_tokens, expected->target_tokens);
  QCOMPARE(f.stage.weight, roomy.stage.weight);  // nothing of the failed attempts was applied
  QCOMPARE(f.stage.steps, std::uint64_t{1});
  QCOMPARE(f.logger.warnings, 2);
  QVERIFY(f.stage.kept.empty());
}

void TestInnerLoop::out_of_memory_with_one_sequence() {
  Fixture f(4);
  f.stage.fits = 0;
  const auto result = f.step(Batch(4, 4));
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::Exhausted);
  QVERIFY(result.error().message.find("Raise the memory limit") != std::string::npos);
  QCOMPARE(f.stage.weight, 1.0);
  QCOMPARE(f.stage.gradient, 0.0);
}

void TestInnerLoop::not_finite_loss() {
  Fixture f(2);
  f.stage.loss_value = std::numeric_limits<double>::infinity();
  const auto result = f.step(Batch(4, 4));
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::Corrupt);
  QVERIFY(result.error().message.find("Restore an earlier checkpoint") != std::string::npos);
  QCOMPARE(f.stage.steps, std::uint64_t{0});
  QCOMPARE(f.stage.gradient, 0.0);
  QVERIFY(f.stage.kept.empty());
}

void TestInnerLoop::not_finite_gradient() {
  Fixture f(2);
  f.stage.spoil_gradient = true;
  const auto result = f.step(Batch(4, 4));
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::Corrupt);
  QVERIFY(result.error().message.find("not applied") != std::string::npos);
  QCOMPARE(f.stage.weight, 1.0);
  QCOMPARE(f.stage.gradient, 0.0);
}

void TestInnerLoop::empty_batches() {
  Fixture f(2);
  QCOMPARE(f.step(Batch(0, 4)).error().code, ErrorCode::InvalidArgument);
  const Batch without_targets(2, 1);
  QCOMPARE(f.step(without_targets).error().code, ErrorCode::InvalidArgument);
  QCOMPARE(f.stage.steps, std::uint64_t{0});
  QCOMPARE(f.stage.gradient, 0.0);
}

void TestInnerLoop::time_is_split() {
  Fixture f(2);
  f.stage.on_forward = [&] { f.clock.advance(std::chrono::milliseconds(250)); };
  const auto result = f.step(Batch(4, 4));
  QVERIFY(result.ok());
  QCOMPARE(result->seconds_forward_backward, 0.5);
  QCOMPARE(result->seconds_optimizer, 0.0);
}

// A reader of the weights beside the passes is asked between the last pass and the update, and the time
// that it takes is neither's.
void TestInnerLoop::held_before_the_update() {
  Fixture f(2);
  f.stage.on_forward = [&] { f.clock.advance(std::chrono::seconds(3)); };
  std::vector<std::string> before;
  f.loop.set_before_update([&] {
    before = f.stage.calls;
    f.clock.advance(std::chrono::seconds(7));
  });
  const auto step = f.step(Batch(4, 2));
  QVERIFY(step.ok());
  QCOMPARE(step->seconds_forward_backward, 6.0);
  QCOMPARE(step->seconds_held, 7.0);
  QCOMPARE(step->seconds_optimizer, 0.0);
  QCOMPARE(std::count(before.begin(), before.end(), "backward"), 2);
  QVERIFY(std::none_of(before.begin(), before.end(),
                       [](const std::string& call) { return call.rfind("step", 0) == 0; }));
  // A step that is given up updates nothing and asks nobody.
  before.clear();
  CancelSource stop;
  stop.cancel();
  QVERIFY(!f.step(Batch(4, 2), stop.token()).ok());
  QVERIFY(before.empty());
  f.loop.set_before_update(nullptr);
  QCOMPARE(f.step(Batch(4, 2)).value().seconds_held, 0.0);
}

void TestInnerLoop::evaluation() {
  FakeStage stage;
  const Batch first(3, 4), second(2, 4);
  int given = 0;
  const train::EvaluationSource source = [&]() -> Expected<train::EvaluationPart> {
    ++given;
    if (given == 1) return train::EvaluationPart{first.view(), 30};
    return given == 2 ? train::EvaluationPart{second.view(), 12} : train::EvaluationPart{};
  };
  const auto result = train::evaluate(stage, source, 2, {});
  QVERIFY(result.ok());
  // Targets: first 1 2 3, 5 6 7, 9 10 11; second 1 2 3, 5 6 7. Losses: one less each.
  QCOMPARE(result->target_tokens, std::uint64_t{15});
  const double loss_sum = (0 + 1 + 2 + 4 + 5 + 6 + 8 + 9 + 10) + (0 + 1 + 2 + 4 + 5 + 6);
  QCOMPARE(result->loss, loss_sum / 15);
  QCOMPARE(result->bytes, std::uint64_t{42});
  QCOMPARE(result->bits_per_byte, loss_sum / std::log(2.0) / 42);
  QCOMPARE(stage.calls, (std::vector<std::string>{"evaluate 2", "evaluate 1", "evaluate 2"}));
}

void TestInnerLoop::evaluation_adapts_to_memory() {
  FakeStage stage;
  stage.fits = 1;
  const Batch batch(3, 4);
  bool given = false;
  const train::EvaluationSource once = [&]() -> Expected<train::EvaluationPart> {
    return std::exchange(given, true) ? train::EvaluationPart{} : train::EvaluationPart{batch.view(), 0};
  };
  const auto result = train::evaluate(stage, once, 3, {});
  QVERIFY(result.ok());
  QCOMPARE(result->target_tokens, std::uint64_t{9});
  QCOMPARE(result->bits_per_byte, 0.0);
  // Nothing left to evaluate is an error that says so, not a loss of 0.
  QCOMPARE(train::evaluate(stage, once, 1, {}).error().code, ErrorCode::InvalidArgument);
}

NS_TEST(TestInnerLoop)
#include "test_inner_loop.moc"
