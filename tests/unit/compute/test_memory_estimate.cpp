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
};

NS_TEST(TestMemoryEstimate)
#include "test_memory_estimate.moc"
