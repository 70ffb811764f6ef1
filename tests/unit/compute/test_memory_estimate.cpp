// Memory estimates: exact where they can be. The comparison with measured peaks is in tests/unit/model.
#include <QtTest>

#include "core/compute/memory_estimate.h"
#include "core/compute/slot.h"
#include "tests/support/test_main.h"

using namespace neuroshard::compute;

class TestMemoryEstimate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void buffers_are_counted_exactly() {
    ModelShape shape;
    shape.layers = 2;
    shape.hidden = 32;
    shape.head_dim = 8;
    shape.heads = 4;
    shape.kv_heads = 2;
    shape.ffn = 48;
    shape.experts = 4;
    shape.experts_per_token = 2;
    shape.vocab = 61;
    shape.sequence = 16;
    const std::uint64_t parameters = 4 * model_parameter_count(shape);
    QCOMPARE(estimate_memory(shape, Precision::Fp32, false).total(), parameters);
    QCOMPARE(estimate_memory(shape, Precision::Fp32, true).total(),
             4 * parameters);  // gradients, and two moments
    QCOMPARE(estimate_session_bytes(shape, Precision::Fp32, 100), std::uint64_t{2 * 4 * 2 * 100 * 2 * 8});
    QCOMPARE(estimate_session_bytes(shape, Precision::Bf16, 100), std::uint64_t{2 * 2 * 2 * 100 * 2 * 8});
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
      QCOMPARE(estimate_activation_bytes_per_sample(shape, precision, 16),
               2 * estimate_activation_bytes_per_sample(shape, precision, 8));
    }
  }

  void stages_add_up_to_the_model() {
    ModelShape shape;
    shape.layers = 6;
    shape.hidden = 64;
    shape.head_dim = 16;
    shape.heads = 4;
    shape.kv_heads = 1;
    shape.ffn = 96;
    shape.experts = 4;
    shape.experts_per_token = 2;
    shape.vocab = 300;
    shape.sequence = 16;
    StageSpec first, rest;
    first.shape = rest.shape = shape;
    first.embed = rest.head = true;
    first.layer_count = 2;
    rest.first_layer = 2;
    rest.layer_count = 4;
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
      const MemoryEstimate whole = estimate_memory(shape, precision, true);
      const MemoryEstimate a = estimate_memory(first, precision), b = estimate_memory(rest, precision);
      QCOMPARE(a.parameters + b.parameters, whole.parameters);
      QCOMPARE(a.packed + b.packed, whole.packed);
      QCOMPARE(a.total() + b.total(), whole.total());
      // Only the scratch of a layer and the boundary's buffers are there twice.
      QVERIFY(estimate_activation_bytes_per_sample(first, precision, 16) +
                  estimate_activation_bytes_per_sample(rest, precision, 16) >
              estimate_activation_bytes_per_sample(shape, precision, 16));
    }
    std::vector<std::uint8_t> held(8, 0);
    held[3] = 1;
    first.expert_held = held.data();
    const std::uint64_t expert = slot_parameter_count(shape, {SlotKind::Expert, 0, 3});
    const std::uint64_t all = estimate_memory(first, Precision::Fp32).parameters;
    first.expert_held = nullptr;
    QCOMPARE(estimate_memory(first, Precision::Fp32).parameters - all, 7 * 4 * expert);
  }
};

NS_TEST(TestMemoryEstimate)
#include "test_memory_estimate.moc"
