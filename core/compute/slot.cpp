#include "core/compute/slot.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace neuroshard::compute {
namespace {

constexpr double init_deviation = 0.02;

// Collects the parameters of one slot, one after the other without gaps.
class Layout {
 public:
  void matrix(std::string name, std::uint64_t rows, std::uint64_t columns, Init init = Init::Normal,
              bool decay = true) {
    add(std::move(name), {rows, columns}, rows * columns, init, decay);
  }
  void norm(std::string name, std::uint64_t width) { add(std::move(name), {width}, width, Init::One, false); }
  std::vector<ParameterInfo> take() { return std::move(parameters_); }

 private:
  void add(std::string name, std::vector<std::uint64_t> dims, std::uint64_t count, Init init, bool decay) {
    parameters_.push_back({std::move(name), std::move(dims), end_, count, init, decay});
    end_ += count;
  }

  std::vector<ParameterInfo> parameters_;
  std::uint64_t end_ = 0;
};

void add_layer(Layout& layout, const ModelShape& shape, std::uint32_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::uint64_t query_width = std::uint64_t{shape.heads} * shape.head_dim;
  const std::uint64_t key_width = std::uint64_t{shape.kv_heads} * shape.head_dim;
  layout.norm(prefix + "input_layernorm.weight", shape.hidden);
  layout.matrix(prefix + "self_attn.q_proj.weight", query_width, shape.hidden);
  layout.matrix(prefix + "self_attn.k_proj.weight", key_width, shape.hidden);
  layout.matrix(prefix + "self_attn.v_proj.weight", key_width, shape.hidden);
  layout.matrix(prefix + "self_attn.o_proj.weight", shape.hidden, query_width, Init::ResidualNormal);
  layout.norm(prefix + "post_attention_layernorm.weight", shape.hidden);
  if (shape.experts > 1) layout.matrix(prefix + "block_sparse_moe.gate.weight", shape.experts, shape.hidden);
}

void add_expert(Layout& layout, const ModelShape& shape, std::uint32_t layer, std::uint32_t expert) {
  const bool sparse = shape.experts > 1;
  const std::string prefix = sparse
                                 ? fmt::format("model.layers.{}.block_sparse_moe.experts.{}.", layer, expert)
                                 : fmt::format("model.layers.{}.mlp.", layer);
  layout.matrix(prefix + (sparse ? "w1.weight" : "gate_proj.weight"), shape.ffn, shape.hidden);
  layout.matrix(prefix + (sparse ? "w3.weight" : "up_proj.weight"), shape.ffn, shape.hidden);
  layout.matrix(prefix + (sparse ? "w2.weight" : "down_proj.weight"), shape.hidden, shape.ffn,
                Init::ResidualNormal);
}

// One generator per slot. Every word of the seed meets the matching word of the slot's own stream and passes
// through SplitMix64 (Rng's expansion of a 64-bit seed), so that no two slots' streams are linearly related.
Rng slot_rng(const Hash256& seed, SlotId slot) {
  const std::uint64_t tag =
      (static_cast<std::uint64_t>(slot.kind) << 60) | (std::uint64_t{slot.layer} << 30) | slot.expert;
  const Rng::State own = Rng(tag).state();
  Rng::State mixed{};
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    mixed[i] = Rng(load_le<std::uint64_t>(seed.data() + 8 * i) ^ own[i]).next();
  }
  return Rng::from_state(mixed);
}

Expected<std::uint32_t> parse_index(std::string_view text, const std::string& whole) {
  std::uint32_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size() ||
      (text.size() > 1 && text.front() == '0')) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("'{}' is not a valid slot: use embed, layer 3, expert 3.7 or head", whole.substr(0, 40)));
  }
  return value;
}

}  // namespace

std::string to_string(SlotId slot) {
  switch (slot.kind) {
    case SlotKind::Embed: return "embed";
    case SlotKind::Layer: return fmt::format("layer {}", slot.layer);
    case SlotKind::Expert: return fmt::format("expert {}.{}", slot.layer, slot.expert);
    case SlotKind::Head: return "head";
  }
  return "unknown slot";
}

Expected<SlotId> parse_slot(const std::string& text) {
  const std::string_view view = text;
  if (view == "embed") return SlotId{SlotKind::Embed, 0, 0};
  if (view == "head") return SlotId{SlotKind::Head, 0, 0};
  constexpr std::string_view layer_word = "layer ";
  constexpr std::string_view expert_word = "expert ";
  if (view.substr(0, layer_word.size()) == layer_word) {
    NS_ASSIGN_OR_RETURN(const std::uint32_t layer, parse_index(view.substr(layer_word.size()), text));
    return SlotId{SlotKind::Layer, layer, 0};
  }
  const std::size_t dot = view.find('.');
  if (view.substr(0, expert_word.size()) == expert_word && dot != std::string_view::npos) {
    NS_ASSIGN_OR_RETURN(const std::uint32_t layer,
                        parse_index(view.substr(expert_word.size(), dot - expert_word.size()), text));
    NS_ASSIGN_OR_RETURN(const std::uint32_t expert, parse_index(view.substr(dot + 1), text));
    return SlotId{SlotKind::Expert, layer, expert};
  }
  NS_RETURN_IF_ERROR(parse_index({}, text));
  return SlotId{};
}

std::vector<SlotId> model_slots(const ModelShape& shape) {
  std::vector<SlotId> slots{{SlotKind::Embed, 0, 0}};
  slots.reserve(2 + std::size_t{shape.layers} * (1 + std::size_t{shape.experts}));
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    slots.push_back({SlotKind::Layer, layer, 0});
    for (std::uint32_t expert = 0; expert < shape.experts; ++expert)
      slots.push_back({SlotKind::Expert, layer, expert});
  }
  slots.push_back({SlotKind::Head, 0, 0});
  return slots;
}

std::vector<ParameterInfo> slot_parameters(const ModelShape& shape, SlotId slot) {
  Layout layout;
  switch (slot.kind) {
    case SlotKind::Embed:
      layout.matrix("model.embed_tokens.weight", shape.vocab, shape.hidden, Init::Normal, false);
      break;
    case SlotKind::Layer: add_layer(layout, shape, slot.layer); break;
    case SlotKind::Expert: add_expert(layout, shape, slot.layer, slot.expert); break;
    case SlotKind::Head:
      layout.norm("model.norm.weight", shape.hidden);
      layout.matrix("lm_head.weight", shape.vocab, shape.hidden);
      break;
  }
  return layout.take();
}

std::uint64_t slot_parameter_count(const ModelShape& shape, SlotId slot) {
  const std::uint64_t hidden = shape.hidden;
  switch (slot.kind) {
    case SlotKind::Embed: return hidden * shape.vocab;
    case SlotKind::Layer: {
      const std::uint64_t query_width = std::uint64_t{shape.heads} * shape.head_dim;
      const std::uint64_t key_width = std::uint64_t{shape.kv_heads} * shape.head_dim;
      const std::uint64_t router = shape.experts > 1 ? hidden * shape.experts : 0;
      return 2 * hidden + 2 * hidden * (query_width + key_width) + router;
    }
    case SlotKind::Expert: return 3 * hidden * shape.ffn;
    case SlotKind::Head: return hidden + hidden * shape.vocab;
  }
  return 0;
}

std::uint64_t model_parameter_count(const ModelShape& shape) {
  const std::uint64_t per_layer = slot_parameter_count(shape, {SlotKind::Layer, 0, 0}) +
                                  shape.experts * slot_parameter_count(shape, {SlotKind::Expert, 0, 0});
  return slot_parameter_count(shape, {SlotKind::Embed, 0, 0}) + shape.layers * per_layer +
         slot_parameter_count(shape, {SlotKind::Head, 0, 0});
}

std::uint64_t active_parameter_count(const ModelShape& shape) {
  const std::uint64_t per_layer =
      slot_parameter_count(shape, {SlotKind::Layer, 0, 0}) +
      shape.experts_per_token * slot_parameter_count(shape, {SlotKind::Expert, 0, 0});
  return shape.layers * per_layer + slot_parameter_count(shape, {SlotKind::Head, 0, 0});
}

void initialise_slot(const ModelShape& shape, SlotId slot, const Hash256& seed, Span<float> values) {
  NS_CHECK(values.size() == slot_parameter_count(shape, slot));
  Rng rng = slot_rng(seed, slot);
  for (const ParameterInfo& parameter : slot_parameters(shape, slot)) {
    const Span<float> target = values.subspan(parameter.offset, parameter.count);
    if (parameter.init == Init::One) {
      for (float& value : target) value = 1.0f;
      continue;
    }
    const double residual = parameter.init == Init::ResidualNormal ? std::sqrt(2.0 * shape.layers) : 1.0;
    const auto deviation = static_cast<float>(init_deviation / residual);
    for (float& value : target) value = deviation * rng.normal();
  }
}

}  // namespace neuroshard::compute
