// The canonical layout of a model: slots, their parameters, initial values, and what a shape may be.
#include <QtTest>

#include <cmath>
#include <cstring>
#include <set>

#include "core/compute/module.h"
#include "core/compute/slot.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::compute;

namespace {

ModelShape small_shape(std::uint32_t experts) {
  ModelShape shape;
  shape.layers = 3;
  shape.hidden = 32;
  shape.head_dim = 8;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 48;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = 50;
  shape.sequence = 16;
  return shape;
}

std::vector<std::string> names(const ModelShape& shape, SlotId slot) {
  std::vector<std::string> result;
  for (const ParameterInfo& parameter : slot_parameters(shape, slot)) result.push_back(parameter.name);
  return result;
}

std::vector<float> initial(const ModelShape& shape, SlotId slot, const Hash256& seed) {
  std::vector<float> values(slot_parameter_count(shape, slot), -1.0f);
  initialise_slot(shape, slot, seed, values);
  return values;
}

double deviation(const float* values, std::uint64_t count) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    sum += values[i];
    squares += double{values[i]} * values[i];
  }
  const double mean = sum / static_cast<double>(count);
  return std::sqrt(squares / static_cast<double>(count) - mean * mean);
}

}  // namespace

class TestSlot : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void slots_are_in_canonical_order() {
    const std::vector<SlotId> all = model_slots(small_shape(2));
    QCOMPARE(all.size(), std::size_t{2 + 3 * 3});
    QCOMPARE(to_string(all[0]), std::string("embed"));
    QCOMPARE(to_string(all[1]), std::string("layer 0"));
    QCOMPARE(to_string(all[2]), std::string("expert 0.0"));
    QCOMPARE(to_string(all[3]), std::string("expert 0.1"));
    QCOMPARE(to_string(all[4]), std::string("layer 1"));
    QCOMPARE(to_string(all[10]), std::string("head"));
  }

  void a_slot_is_read_back_from_its_name() {
    for (const SlotId slot : model_slots(small_shape(8))) {
      const Expected<SlotId> parsed = parse_slot(to_string(slot));
      QVERIFY(parsed.ok());
      QVERIFY(*parsed == slot);
    }
    for (const char* bad : {"", "layer", "layer ", "layer -1", "layer 01", "layer 1x", "expert 3",
                            "expert 3.", "expert .7", "expert 3.7.1", "Head", "head ", "layer 4294967296"}) {
      QVERIFY2(!parse_slot(bad).ok(), bad);
    }
  }

  void parameters_have_the_public_mixtral_names() {
    const ModelShape shape = small_shape(8);
    QCOMPARE(names(shape, {SlotKind::Embed, 0, 0}), std::vector<std::string>{"model.embed_tokens.weight"});
    const std::vector<std::string> layer{
        "model.layers.2.input_layernorm.weight",      "model.layers.2.self_attn.q_proj.weight",
        "model.layers.2.self_attn.k_proj.weight",     "model.layers.2.self_attn.v_proj.weight",
        "model.layers.2.self_attn.o_proj.weight",     "model.layers.2.post_attention_layernorm.weight",
        "model.layers.2.block_sparse_moe.gate.weight"};
    QCOMPARE(names(shape, {SlotKind::Layer, 2, 0}), layer);
    const std::vector<std::string> expert{"model.layers.1.block_sparse_moe.experts.5.w1.weight",
                                          "model.layers.1.block_sparse_moe.experts.5.w3.weight",
                                          "model.layers.1.block_sparse_moe.experts.5.w2.weight"};
    QCOMPARE(names(shape, {SlotKind::Expert, 1, 5}), expert);
    const std::vector<std::string> head{"model.norm.weight", "lm_head.weight"};
    QCOMPARE(names(shape, {SlotKind::Head, 0, 0}), head);
  }

  void a_dense_model_has_the_public_llama_names() {
    const ModelShape shape = small_shape(1);
    QCOMPARE(names(shape, {SlotKind::Layer, 0, 0}).size(), std::size_t{6});  // no router
    const std::vector<std::string> ffn{"model.layers.1.mlp.gate_proj.weight",
                                       "model.layers.1.mlp.up_proj.weight",
                                       "model.layers.1.mlp.down_proj.weight"};
    QCOMPARE(names(shape, {SlotKind::Expert, 1, 0}), ffn);
  }

  void parameters_fill_the_buffer_without_gaps() {
    for (const std::uint32_t experts : {1u, 8u}) {
      const ModelShape shape = small_shape(experts);
      std::uint64_t total = 0;
      std::set<std::string> seen;
      for (const SlotId slot : model_slots(shape)) {
        std::uint64_t end = 0;
        for (const ParameterInfo& parameter : slot_parameters(shape, slot)) {
          QCOMPARE(parameter.offset, end);
          std::uint64_t product = 1;
          for (const std::uint64_t dim : parameter.dims) product *= dim;
          QCOMPARE(parameter.count, product);
          end += parameter.count;
          QVERIFY(seen.insert(parameter.name).second);
          const bool norm = parameter.dims.size() == 1;
          QCOMPARE(parameter.decay, !norm && slot.kind != SlotKind::Embed);
        }
        QCOMPARE(slot_parameter_count(shape, slot), end);
        total += end;
      }
      QCOMPARE(model_parameter_count(shape), total);
    }
  }

  void active_parameters_leave_out_what_a_token_does_not_touch() {
    const ModelShape shape = small_shape(8);
    const std::uint64_t idle =
        3 * 6 * (3 * 32 * 48) + 50 * 32;  // six experts a layer, and the embedding table
    QCOMPARE(active_parameter_count(shape), model_parameter_count(shape) - idle);
    QCOMPARE(active_parameter_count(small_shape(1)), model_parameter_count(small_shape(1)) - 50 * 32);
  }

  void initial_values_follow_seed_and_slot_only() {
    const ModelShape shape = small_shape(8);
    Hash256 seed{};
    seed[3] = 7;
    Hash256 other = seed;
    other[31] = 1;
    const std::vector<float> first = initial(shape, {SlotKind::Expert, 1, 5}, seed);
    QVERIFY(first == initial(shape, {SlotKind::Expert, 1, 5}, seed));
    QVERIFY(first != initial(shape, {SlotKind::Expert, 5, 1}, seed));
    QVERIFY(first != initial(shape, {SlotKind::Expert, 1, 4}, seed));
    QVERIFY(first != initial(shape, {SlotKind::Expert, 1, 5}, other));
    QVERIFY(!initial(shape, {SlotKind::Embed, 0, 0}, Hash256{}).empty());  // an all-zero seed is a seed
    QVERIFY(deviation(initial(shape, {SlotKind::Embed, 0, 0}, Hash256{}).data(), 1600) > 0.015);
  }

  void initial_values_never_change() {  // every node of a network must get these bits
    const std::vector<float> values = initial(small_shape(8), {SlotKind::Layer, 2, 0}, Hash256{1, 2, 3});
    QCOMPARE(values[0], 1.0f);
    std::uint64_t digest = 1469598103934665603u;  // FNV-1a over the bits
    for (const float value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      digest = (digest ^ bits) * 1099511628211u;
    }
    QCOMPARE(digest, std::uint64_t{7417173053693673009u});  // confirmed by an independent program
  }

  void initial_values_have_the_stated_deviation() {
    ModelShape shape = small_shape(8);
    shape.ffn = 512;
    const std::vector<float> layer = initial(shape, {SlotKind::Layer, 0, 0}, Hash256{9});
    for (const ParameterInfo& parameter : slot_parameters(shape, {SlotKind::Layer, 0, 0})) {
      if (parameter.init == Init::One) {
        for (std::uint64_t i = 0; i < parameter.count; ++i) QCOMPARE(layer[parameter.offset + i], 1.0f);
      }
    }
    const std::vector<float> expert = initial(shape, {SlotKind::Expert, 0, 0}, Hash256{9});
    const std::vector<ParameterInfo> parameters = slot_parameters(shape, {SlotKind::Expert, 0, 0});
    const double gate = deviation(expert.data() + parameters[0].offset, parameters[0].count);
    const double down = deviation(expert.data() + parameters[2].offset, parameters[2].count);
    QVERIFY2(std::abs(gate - 0.02) < 0.0005, qPrintable(QString::number(gate)));
    QVERIFY2(std::abs(down - 0.02 / std::sqrt(6.0)) < 0.0003, qPrintable(QString::number(down)));
  }

  void a_bad_shape_is_refused_by_name() {
    QVERIFY(validate(small_shape(1)).ok());
    QVERIFY(validate(small_shape(8)).ok());
    const auto refused = [](void (*change)(ModelShape&), const char* field) {
      ModelShape shape = small_shape(8);
      change(shape);
      const Expected<void> result = validate(shape);
      return !result.ok() && result.error().code == ErrorCode::InvalidArgument &&
             result.error().message.find(field) != std::string::npos;
    };
    QVERIFY(refused([](ModelShape& s) { s.layers = 0; }, "layers"));
    QVERIFY(refused([](ModelShape& s) { s.layers = 4'000'000'000u; }, "layers"));
    QVERIFY(refused([](ModelShape& s) { s.hidden = 33; }, "hidden"));
    QVERIFY(refused([](ModelShape& s) { s.head_dim = 7; }, "head_dim"));
    QVERIFY(refused([](ModelShape& s) { s.kv_heads = 3; }, "kv_heads"));
    QVERIFY(refused([](ModelShape& s) { s.kv_heads = 0; }, "kv_heads"));
    QVERIFY(refused([](ModelShape& s) { s.ffn = 0; }, "ffn"));
    QVERIFY(refused([](ModelShape& s) { s.experts_per_token = 9; }, "experts_per_token"));
    QVERIFY(refused([](ModelShape& s) { s.vocab = 1; }, "vocab"));
    QVERIFY(refused([](ModelShape& s) { s.sequence = 0; }, "sequence"));
    QVERIFY(refused([](ModelShape& s) { s.rope_theta = std::nanf(""); }, "rope_theta"));
    QVERIFY(refused([](ModelShape& s) { s.rms_epsilon = 0; }, "rms_epsilon"));
    QVERIFY(
        refused([](ModelShape& s) { s.layers = 1024, s.ffn = 1u << 20, s.experts = 1024; }, "parameters"));
  }
};

NS_TEST(TestSlot)
#include "test_slot.moc"
