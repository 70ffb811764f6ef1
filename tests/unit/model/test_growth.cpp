// A grown model computes what the smaller one computed, and learns more. One that shrinks again computes the same.
#include <QtTest>

#include "core/compute/growth.h"
#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

ModelShape larger_than(const ModelShape& shape, std::uint32_t layers, std::uint32_t times) {
  ModelShape larger = shape;
  larger.layers = layers;
  larger.hidden *= times;
  larger.heads *= times;
  larger.kv_heads *= times;
  larger.ffn *= times;
  return larger;
}

Status forward(Stage& stage, const Batch& batch, double* loss) {
  ForwardMetrics metrics;
  const Status status = stage.forward(1, batch.view, nullptr, &metrics);
  *loss = metrics.loss_sum / static_cast<double>(metrics.target_tokens);
  return status;
}

Status train(Stage& stage, const Batch& batch, std::uint64_t first, std::uint64_t steps, double* loss) {
  for (std::uint64_t step = first; step < first + steps; ++step) {
    if (const Status status = forward(stage, batch, loss); !status.ok()) return status;
    if (const Status status = stage.backward(1, nullptr, nullptr); !status.ok()) return status;
    StepOptions options;
    options.learning_rate = 3e-3;
    options.tokens = batch.tokens.size();
    options.step = step;
    StepMetrics metrics;
    if (const Status status = stage.step(options, &metrics); !status.ok()) return status;
  }
  return Status();
}

SlotBuffers buffers_of(Stage& stage, SlotId id) {
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i)
    if (stage.slot(i).id == id) return stage.slot(i);
  return {};
}

void grow(Stage& smaller, const ModelShape& before, Stage& larger, const ModelShape& after) {
  for (std::uint32_t i = 0; i < larger.slot_count(); ++i) {
    const SlotBuffers to = larger.slot(i);
    Span<const float> old;
    if (const auto from = compute::grown_from(before, after, to.id)) {
      const SlotBuffers source = buffers_of(smaller, *from);
      old = {source.parameters, source.count};
    }
    compute::grow_slot(before, after, to.id, old, Hash256{9}, {to.parameters, to.count});
  }
  larger.parameters_changed();
}

void shrink(Stage& larger, const ModelShape& before, Stage& smaller, const ModelShape& after) {
  for (std::uint32_t i = 0; i < smaller.slot_count(); ++i) {
    const SlotBuffers to = smaller.slot(i);
    const SlotBuffers source = buffers_of(larger, compute::shrunk_from(after, before, to.id));
    compute::shrink_slot(after, before, to.id, {source.parameters, source.count}, {to.parameters, to.count});
  }
  smaller.parameters_changed();
}

}  // namespace

class TestGrowth : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_loss_stays_data() {
    QTest::addColumn<unsigned>("experts");
    QTest::addColumn<unsigned>("layers");
    QTest::addColumn<unsigned>("times");
    for (const unsigned experts : {1u, 4u}) {
      QTest::addRow("deeper, %u experts", experts) << experts << 5u << 1u;
      QTest::addRow("wider, %u experts", experts) << experts << 2u << 2u;
      QTest::addRow("both, %u experts", experts) << experts << 3u << 3u;
    }
  }
  void the_loss_stays() {
    QFETCH(const unsigned, experts);
    QFETCH(const unsigned, layers);
    QFETCH(const unsigned, times);
    auto loaded = load(1);
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    const ModelShape before = small_shape(experts), after = larger_than(before, layers, times);
    const StagePtr small = stage_of(*loaded->module, whole_model(before));
    const StagePtr large = stage_of(*loaded->module, whole_model(after));
    const Batch batch(before, 4, 16, 1), unseen(before, 4, 16, 2);
    double trained = 0;
    NS_VERIFY_OK(train(*small, batch, 1, 10, &trained));
    grow(*small, before, *large, after);
    const StagePtr again = stage_of(*loaded->module, whole_model(before));
    shrink(*large, after, *again, before);
    for (const Batch* of : {&batch, &unseen}) {
      double loss = 0, grown = 0, shrunk = 0;
      NS_VERIFY_OK(forward(*small, *of, &loss));
      NS_VERIFY_OK(forward(*large, *of, &grown));
      NS_VERIFY_OK(forward(*again, *of, &shrunk));
      for (Stage* stage : {&*small, &*large, &*again}) stage->discard(1);
      qInfo("loss %.6f, grown %.6f, shrunk again %.6f", loss, grown, shrunk);
      QVERIFY(std::abs(loss - grown) < 1e-3);
      // Only the gains have been rounded, and only in a model of another width.
      QVERIFY(std::abs(loss - shrunk) <= (times > 1 ? 1e-5 : 0.0));
    }
    // The new weights learn, and the larger model learns more.
    double of_small = 0, of_large = 0;
    NS_VERIFY_OK(train(*small, batch, 11, 20, &of_small));
    NS_VERIFY_OK(train(*large, batch, 1, 20, &of_large));
    qInfo("20 steps later: %.4f, grown %.4f", of_small, of_large);
    QVERIFY(of_large < (times > 1 ? of_small : 1.1 * of_small));
    // Nothing that was zero is dead: the new dimensions of the embedding, and what a new layer writes.
    const SlotBuffers embed = buffers_of(*large, {SlotKind::Embed, 0, 0});
    for (std::uint64_t column = before.hidden; column < after.hidden; ++column) {
      float written = 0;
      for (std::uint64_t row = 0; row < after.vocab; ++row)
        written = std::max(written, std::abs(embed.parameters[row * after.hidden + column]));
      QVERIFY(written > 0);
    }
    for (std::uint32_t layer = 0; layer < after.layers; ++layer) {
      const SlotId slot{SlotKind::Layer, layer, 0};
      if (compute::grown_from(before, after, slot)) continue;
      const ParameterInfo output = slot_parameters(after, slot)[4];
      QVERIFY(output.name.find("o_proj") != std::string::npos);
      const float* values = buffers_of(*large, slot).parameters + output.offset;
      QVERIFY(std::any_of(values, values + output.count, [](float value) { return value != 0; }));
    }
  }
};

NS_TEST(TestGrowth)
#include "test_growth.moc"
