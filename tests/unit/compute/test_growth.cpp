// Growing models: which slots continue which, each value by its definition, and what can't grow. tests/unit/model has the same with
// the compute module.
#include <QtTest>
#include <cmath>

#include "core/compute/growth.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::compute;

namespace {

ModelShape shape_of(std::uint32_t layers, std::uint32_t hidden, std::uint32_t ffn) {
  ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.head_dim = 8;
  shape.heads = hidden / 8;
  shape.kv_heads = hidden / 16;
  shape.ffn = ffn;
  shape.experts = 3;
  shape.experts_per_token = 2;
  shape.vocab = 11;
  shape.sequence = 8;
  return shape;
}

std::vector<float> values_of(const ModelShape& shape, SlotId slot) {
  std::vector<float> values(slot_parameter_count(shape, slot));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i);
  return values;
}

std::string refusal(const ModelShape& smaller, const ModelShape& larger) {
  const auto checked = check_growth(smaller, larger);
  return checked.ok() ? std::string() : checked.error().message;
}

}  // namespace

class TestGrowth : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_layer_continues_once() {
    for (std::uint32_t few = 1; few <= 12; ++few) {
      for (std::uint32_t many = few; many <= 24; ++many) {
        const ModelShape smaller = shape_of(few, 16, 24), larger = shape_of(many, 16, 24);
        std::uint32_t next = 0;
        for (std::uint32_t layer = 0; layer < many; ++layer) {
          const auto from = grown_from(smaller, larger, {SlotKind::Layer, layer, 0});
          if (!from) continue;
          QCOMPARE(from->layer, next);
          QCOMPARE(layer, next * many / few);
          QVERIFY(grown_from(smaller, larger, {SlotKind::Expert, layer, 2}) ==
                  (SlotId{SlotKind::Expert, next, 2}));
          ++next;
        }
        QCOMPARE(next, few);
      }
    }
    const ModelShape shape = shape_of(2, 16, 24);
    QVERIFY(grown_from(shape, shape, {SlotKind::Head, 0, 0}) == (SlotId{SlotKind::Head, 0, 0}));
  }

  // Value by value: the old block, and around it zeros where a new value would be written into the residual stream.
  void values_follow_their_definition() {
    const ModelShape smaller = shape_of(2, 16, 24), larger = shape_of(3, 32, 40);
    const Hash256 seed{1};
    for (const SlotId slot : model_slots(larger)) {
      const auto from = grown_from(smaller, larger, slot);
      const std::vector<float> old = from ? values_of(smaller, *from) : std::vector<float>();
      std::vector<float> values(slot_parameter_count(larger, slot)), fresh = values;
      grow_slot(smaller, larger, slot, {old.data(), old.size()}, seed, {values.data(), values.size()});
      initialise_slot(larger, slot, seed, {fresh.data(), fresh.size()});
      const auto after = slot_parameters(larger, slot);
      for (std::size_t p = 0; p < after.size(); ++p) {
        const ParameterInfo& to = after[p];
        const bool norm = to.dims.size() == 1;
        const bool zero = to.name.find("o_proj") != std::string::npos ||
                          to.name.find(".w2.") != std::string::npos ||
                          to.name.find("embed_tokens") != std::string::npos;
        for (std::uint64_t i = 0; i < to.count; ++i) {
          const std::uint64_t columns = norm ? 1 : to.dims[1], row = i / columns, column = i % columns;
          float expected = zero ? 0.0f : fresh[to.offset + i];
          if (from) {
            const ParameterInfo was = slot_parameters(smaller, *from)[p];
            const std::uint64_t old_columns = norm ? 1 : was.dims[1];
            const bool inside = row < was.dims[0] && column < old_columns;
            if (inside) expected = old[was.offset + row * old_columns + column];
            if (norm) expected = static_cast<float>(std::sqrt(0.5) * (inside ? double{expected} : 1.0));
          }
          QVERIFY2(values[to.offset + i] == expected, (to_string(slot) + " " + to.name).c_str());
        }
      }
    }
  }

  void the_same_shape_keeps_every_bit() {
    const ModelShape shape = shape_of(2, 16, 24);
    for (const SlotId slot : model_slots(shape)) {
      const std::vector<float> old = values_of(shape, slot);
      std::vector<float> values(old.size());
      grow_slot(shape, shape, slot, {old.data(), old.size()}, Hash256{}, {values.data(), values.size()});
      QVERIFY(values == old);
    }
  }

  void what_cant_grow_is_named() {
    const ModelShape shape = shape_of(2, 16, 24);
    QCOMPARE(refusal(shape, shape), std::string());
    QCOMPARE(refusal(shape, shape_of(5, 48, 100)), std::string());
    const auto with = [&](auto change) {
      ModelShape other = shape;
      change(other);
      return refusal(shape, other);
    };
    QVERIFY(with([](ModelShape& s) { s.layers = 1; }).find("layers") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.hidden = 8; }).find("width") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.ffn = 8; }).find("width of an expert") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.experts = 4; }).find("experts") != std::string::npos);
    ModelShape four = shape_of(2, 32, 24), eight = shape_of(2, 64, 24);
    four.kv_heads = eight.kv_heads = 2;
    QVERIFY(refusal(four, eight).find("heads per key head of 2 can't become 4") != std::string::npos);
    // All old heads share the first key head, before and after.
    four.kv_heads = 1;
    QCOMPARE(refusal(four, eight), std::string());
    QVERIFY(with([](ModelShape& s) { s.head_dim = 16; }).find("dimensions of a head") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.vocab = 12; }).find("vocabulary of 11") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.sequence = 4; }).find("context") != std::string::npos);
    QVERIFY(with([](ModelShape& s) { s.rope_theta = 5; }).find("rotation") != std::string::npos);
  }
};

NS_TEST(TestGrowth)
#include "test_growth.moc"
