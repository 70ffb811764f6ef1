// bf16: activations, products and packed weights are rounded, sums and the optimizer are not. The oracle is
// the same module in fp32.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/model/session_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

ModelShape odd_shape(std::uint32_t experts) {
  ModelShape shape = small_shape(experts);
  shape.hidden = 72;  // none of the sizes is a multiple of a tile's
  shape.heads = 6;
  shape.kv_heads = 2;
  shape.head_dim = 12;
  shape.ffn = 100;
  shape.vocab = 83;
  shape.sequence = 37;
  return shape;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / std::max(norm(b), 1e-30);
}

std::vector<float> gradient_of(Stage& stage, std::uint32_t slot) {
  const SlotBuffers buffers = stage.slot(slot);
  return std::vector<float>(buffers.gradient, buffers.gradient + buffers.count);
}

double evaluate(Stage& stage, const Batch& batch) {
  ForwardMetrics metrics;
  return stage.evaluate(batch.view, nullptr, &metrics).ok() ? metrics.loss_sum : std::nan("");
}

}  // namespace

class TestBf16 : public QObject {
  Q_OBJECT
 private:
  StagePtr make(const std::string& precision, const StageSpec& spec, float scale = 1.0f) {
    const Expected<LoadedModule> loaded = load(2, 0, "", precision);
    return loaded.ok() ? stage_of(*loaded->module, spec, scale) : nullptr;
  }

  // Tokens in which the next one follows from the last, so that losses fall.
  static void make_learnable(Batch& batch, const ModelShape& shape) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      batch.targets[i] = (batch.tokens[i] * 5 + 3) % static_cast<std::int32_t>(shape.vocab);
    }
  }

  static double train(Stage& stage, const ModelShape& shape, std::uint64_t steps) {
    double loss = 0;
    for (std::uint64_t step = 1; step <= steps; ++step) {
      Batch batch(shape, 4, shape.sequence, step);
      make_learnable(batch, shape);
      ForwardMetrics metrics;
      StepMetrics result;
      StepOptions options;
      options.learning_rate = 3e-3;
      options.step = step;
      if (!stage.forward(1, batch.view, nullptr, &metrics).ok() || !stage.backward(1, nullptr, nullptr).ok())
        return std::nan("");
      options.tokens = metrics.tokens;
      if (!stage.step(options, &result).ok()) return std::nan("");
      loss = metrics.loss_sum / static_cast<double>(metrics.tokens);
    }
    return loss;
  }

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load(2, 0, "", "bf16");
    if (!loaded.ok()) {
      QVERIFY(loaded.error().code == ErrorCode::Unsupported);
      QSKIP("this processor has no bf16 units");
    }
    QCOMPARE(std::string(loaded->info.precision), std::string("bf16"));
    const Expected<LoadedModule> chosen = load(2, 0, "", "auto");
    QVERIFY(chosen.ok());
    QCOMPARE(std::string(chosen->info.precision), std::string("bf16"));
  }

  void gradients_are_those_of_fp32_but_for_rounding_data() {
    QTest::addColumn<quint32>("experts");
    QTest::newRow("mixture") << 4u;
    QTest::newRow("dense") << 1u;
  }
  void gradients_are_those_of_fp32_but_for_rounding() {
    QFETCH(quint32, experts);
    ModelShape shape = odd_shape(experts);
    shape.experts_per_token = experts;  // else a token between two experts would choose the other one
    const StagePtr exact = make("fp32", whole_model(shape), 4.0f);
    const StagePtr rounded = make("bf16", whole_model(shape), 4.0f);
    QVERIFY(exact != nullptr && rounded != nullptr);
    const Batch batch(shape, 3, shape.sequence, 7);
    ForwardMetrics expected, got;
    NS_VERIFY_OK(exact->forward(1, batch.view, nullptr, &expected));
    NS_VERIFY_OK(rounded->forward(1, batch.view, nullptr, &got));
    QVERIFY(got.loss_sum != expected.loss_sum);  // it is another arithmetic
    QVERIFY2(std::abs(got.loss_sum / expected.loss_sum - 1) < 5e-3,
             qPrintable(QString::number(got.loss_sum)));
    NS_VERIFY_OK(exact->backward(1, nullptr, nullptr));
    NS_VERIFY_OK(rounded->backward(1, nullptr, nullptr));
    for (std::uint32_t slot = 0; slot < exact->slot_count(); ++slot) {
      const double error = relative_distance(gradient_of(*rounded, slot), gradient_of(*exact, slot));
      QVERIFY2(error < 0.06,
               qPrintable(QString("%1: %2").arg(to_string(exact->slot(slot).id).c_str()).arg(error)));
    }
  }

  void training_reaches_the_loss_of_fp32_data() { gradients_are_those_of_fp32_but_for_rounding_data(); }
  void training_reaches_the_loss_of_fp32() {
    QFETCH(quint32, experts);
    ModelShape shape = small_shape(experts);
    shape.hidden = 64;
    shape.head_dim = 16;
    shape.ffn = 96;
    const StagePtr exact = make("fp32", whole_model(shape));
    const double expected = train(*exact, shape, 100);
    const StagePtr rounded = make("bf16", whole_model(shape));
    const double got = train(*rounded, shape, 100);
    QVERIFY2(expected < 1.5, qPrintable(QString::number(expected)));  // from ln 61 = 4.1
    QVERIFY2(std::abs(got - expected) < 0.02, qPrintable(QString("%1 for %2").arg(got).arg(expected)));
  }

  // The optimizer writes masters and packed copies in one pass: they must be the same weights.
  void packed_copies_follow_the_optimizer() {
    const ModelShape shape = odd_shape(4);
    const StagePtr stage = make("bf16", whole_model(shape));
    train(*stage, shape, 3);
    const Batch batch(shape, 2, shape.sequence, 99);
    const double after_step = evaluate(*stage, batch);
    stage->parameters_changed();
    QCOMPARE(evaluate(*stage, batch), after_step);
    // And weights that are copied in are used at once.
    const StagePtr other = make("bf16", whole_model(shape));
    QVERIFY(evaluate(*other, batch) != after_step);
    for (std::uint32_t slot = 0; slot < stage->slot_count(); ++slot) {
      std::vector<float> values(stage->slot(slot).count);
      NS_VERIFY_OK(stage->copy_out(slot, SlotBuffer::Parameters, values.data()));
      NS_VERIFY_OK(other->copy_in(slot, SlotBuffer::Parameters, values.data()));
    }
    QCOMPARE(evaluate(*other, batch), after_step);
  }

  void micro_batches_add_up() {
    const ModelShape shape = odd_shape(1);
    const StagePtr whole = make("bf16", whole_model(shape));
    const StagePtr parts = make("bf16", whole_model(shape));
    const Batch batch(shape, 2, shape.sequence, 3);
    ForwardMetrics metrics;
    NS_VERIFY_OK(whole->forward(1, batch.view, nullptr, &metrics));
    NS_VERIFY_OK(whole->backward(1, nullptr, nullptr));
    for (std::uint32_t i = 0; i < 2; ++i) {
      MicroBatch part = batch.view;
      part.batch = 1;
      part.tokens += i * shape.sequence;
      part.targets += i * shape.sequence;
      NS_VERIFY_OK(parts->forward(i, part, nullptr, &metrics));
      NS_VERIFY_OK(parts->backward(i, nullptr, nullptr));
    }
    for (std::uint32_t slot = 0; slot < whole->slot_count(); ++slot) {
      QVERIFY(relative_distance(gradient_of(*parts, slot), gradient_of(*whole, slot)) < 1e-3);
    }
  }

  void generation_with_a_cache_is_that_without() {
    const ModelShape shape = odd_shape(4);
    StageSpec spec = whole_model(shape);
    spec.trainable = false;
    const StagePtr stage = make("bf16", spec, 4.0f);
    const Batch batch(shape, 1, shape.sequence, 5);
    std::vector<float> all(std::size_t{shape.sequence} * shape.vocab);
    NS_VERIFY_OK(stage->logits(batch.view, all.data()));
    NS_VERIFY_OK(stage->open_session(1, shape.sequence));
    std::vector<float> last(shape.vocab);
    NS_VERIFY_OK(stage->extend_session(1, 20, batch.tokens.data(), nullptr, nullptr, last.data()));
    for (std::uint32_t at = 20; at < shape.sequence; ++at) {
      const std::vector<float> expected(all.begin() + (at - 1) * shape.vocab, all.begin() + at * shape.vocab);
      QVERIFY2(relative_distance(last, expected) < 0.05, qPrintable(QString::number(at)));
      NS_VERIFY_OK(stage->extend_session(1, 1, batch.tokens.data() + at, nullptr, nullptr, last.data()));
    }
  }

  void sessions_in_one_call_are_as_alone() {
    for (const std::uint32_t experts : {1u, 4u}) {
      const ModelShape shape = odd_shape(experts);
      StageSpec spec = whole_model(shape);
      spec.trainable = false;
      const StagePtr stage = make("bf16", spec, 4.0f);
      const QString difference = difference_to_alone(*stage, shape);
      QVERIFY2(difference.isEmpty(), qPrintable(difference));
    }
  }

  void not_finite_gradients_change_nothing() {
    const ModelShape shape = odd_shape(1);
    const StagePtr stage = make("bf16", whole_model(shape));
    const Batch batch(shape, 1, shape.sequence, 1);
    const double before = evaluate(*stage, batch);
    stage->slot(1).gradient[5] = std::numeric_limits<float>::infinity();
    StepOptions options;
    options.learning_rate = 1e-3;
    options.tokens = 10;
    options.step = 1;
    StepMetrics metrics;
    QVERIFY(!stage->step(options, &metrics).ok());
    QCOMPARE(evaluate(*stage, batch), before);
  }
};

NS_TEST(TestBf16)
#include "test_bf16.moc"
