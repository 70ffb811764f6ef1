// Growing and shrinking models: which slots continue which, each value by its definition, and what can't grow. tests/unit/model has
// the same with the compute module.
#include <QtTest>
#include <cmath>
#include <cstring>

#include "core/base/rng.h"
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

// Of both signs, some of them zero, and of very different sizes.
std::vector<float> varied(std::uint64_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(60)) - 30);
    if (rng.below(16) == 0) value = rng.below(2) == 0 ? 0.0f : -0.0f;
  }
  return values;
}

bool same_bits(Span<const float> a, Span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

bool neighbours(float a, float b) {
  return a == b || std::nextafter(a, b) == b;
}

// The slot of the larger shape, shrunk.
std::vector<float> shrunk(const ModelShape& smaller, const ModelShape& larger, SlotId slot,
                          const std::vector<float>& old) {
  std::vector<float> values(slot_parameter_count(smaller, slot), -7.0f);
  shrink_slot(smaller, larger, slot, old, values);
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
        for (const SlotId slot : model_slots(smaller)) {
          const SlotId source = shrunk_from(smaller, larger, slot);
          QVERIFY(grown_from(smaller, larger, source) == slot);
        }
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
      std::vector<float> momentum(values.size(), -7.0f);
      grow_momentum(smaller, larger, slot, old, momentum);
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
          float expected = zero ? 0.0f : fresh[to.offset + i], linear = 0.0f;
          if (from) {
            const ParameterInfo was = slot_parameters(smaller, *from)[p];
            const std::uint64_t old_columns = norm ? 1 : was.dims[1];
            const bool inside = row < was.dims[0] && column < old_columns;
            if (inside) expected = linear = old[was.offset + row * old_columns + column];
            if (norm) linear = static_cast<float>(std::sqrt(0.5) * double{linear});
            if (norm) expected = static_cast<float>(std::sqrt(0.5) * (inside ? double{expected} : 1.0));
          }
          QVERIFY2(values[to.offset + i] == expected, (to_string(slot) + " " + to.name).c_str());
          QVERIFY2(momentum[to.offset + i] == linear, (to_string(slot) + " " + to.name).c_str());
        }
      }
    }
  }

  // Of a larger model that has learned: its values, and nothing of the seed.
  void shrunk_values_follow_their_definition() {
    const ModelShape smaller = shape_of(2, 16, 24), larger = shape_of(3, 32, 40);
    for (const SlotId slot : model_slots(smaller)) {
      const SlotId from = shrunk_from(smaller, larger, slot);
      QVERIFY(from.kind == slot.kind && from.expert == slot.expert);
      QCOMPARE(from.layer, slot.layer);  // 0 and floor(3 / 2)
      const std::vector<float> old = values_of(larger, from), values = shrunk(smaller, larger, slot, old);
      const auto after = slot_parameters(smaller, slot), before = slot_parameters(larger, from);
      for (std::size_t p = 0; p < after.size(); ++p) {
        const bool norm = after[p].dims.size() == 1;
        const std::uint64_t columns = norm ? 1 : after[p].dims[1], old_columns = norm ? 1 : before[p].dims[1];
        for (std::uint64_t i = 0; i < after[p].count; ++i) {
          const float was = old[before[p].offset + i / columns * old_columns + i % columns];
          const float expected = norm ? static_cast<float>(std::sqrt(2.0) * double{was}) : was;
          QVERIFY2(values[after[p].offset + i] == expected, (to_string(slot) + " " + after[p].name).c_str());
        }
      }
    }
  }

  void shrinking_undoes_growing_data() {
    QTest::addColumn<unsigned>("layers");
    QTest::addColumn<unsigned>("hidden");
    QTest::addColumn<unsigned>("ffn");
    QTest::newRow("the same") << 2u << 16u << 24u;
    QTest::newRow("deeper") << 5u << 16u << 24u;
    QTest::newRow("wider experts") << 2u << 16u << 25u;
    QTest::newRow("twice as wide") << 2u << 32u << 24u;
    QTest::newRow("three times as wide") << 2u << 48u << 24u;
    QTest::newRow("four times, scales without rounding") << 2u << 64u << 24u;
    QTest::newRow("all") << 7u << 80u << 100u;
  }
  void shrinking_undoes_growing() {
    QFETCH(const unsigned, layers);
    QFETCH(const unsigned, hidden);
    QFETCH(const unsigned, ffn);
    const ModelShape smaller = shape_of(2, 16, 24), larger = shape_of(layers, hidden, ffn);
    const bool exact = hidden == 16 || hidden == 64;
    for (const SlotId slot : model_slots(smaller)) {
      const SlotId grown = shrunk_from(smaller, larger, slot);
      const std::vector<float> old = varied(slot_parameter_count(smaller, slot), slot.layer + 1);
      std::vector<float> weights(slot_parameter_count(larger, grown)), momentum = weights;
      grow_slot(smaller, larger, grown, old, Hash256{1}, weights);
      grow_momentum(smaller, larger, grown, old, momentum);
      for (const std::vector<float>& back :
           {shrunk(smaller, larger, slot, weights), shrunk(smaller, larger, slot, momentum)}) {
        for (const ParameterInfo& parameter : slot_parameters(smaller, slot)) {
          const auto of = [&](const std::vector<float>& values) {
            return Span<const float>(values).subspan(parameter.offset, parameter.count);
          };
          if (exact || parameter.init != Init::One) {
            QVERIFY2(same_bits(of(back), of(old)), parameter.name.c_str());
            continue;
          }
          for (std::uint64_t i = 0; i < parameter.count; ++i)
            QVERIFY2(neighbours(of(back)[i], of(old)[i]), parameter.name.c_str());
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
      grow_momentum(shape, shape, slot, old, values);
      QVERIFY(values == old);
      QVERIFY(shrunk(shape, shape, slot, old) == old);
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
