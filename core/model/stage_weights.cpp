#include "core/model/stage_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neuroshard::model {
namespace {

using compute::SlotId;
using compute::SlotKind;

// Appends slots in the order in which they are asked for.
class Slots {
 public:
  Slots(const compute::StageSpec& spec, const std::vector<SlotState>& old, std::vector<SlotState>& slots)
      : spec_(spec), old_(old), slots_(slots) {}

  // Valid until the next one.
  SlotState& add(SlotId id) {
    const auto found =
        std::find_if(old_.begin(), old_.end(), [&](const SlotState& slot) { return slot.id == id; });
    slots_.push_back(found != old_.end() ? *found : make_slot_state(spec_.shape, id, spec_.trainable));
    return slots_.back();
  }

 private:
  const compute::StageSpec& spec_;
  const std::vector<SlotState>& old_;
  std::vector<SlotState>& slots_;
};

BlockWeights make_block(const compute::StageSpec& spec, const Kernels& kernels, std::uint32_t index,
                        Slots& slots) {
  const std::uint32_t experts = spec.shape.experts;
  const std::uint32_t layer = spec.first_layer + index;
  BlockWeights block;
  {
    SlotState& slot = slots.add({SlotKind::Layer, layer, 0});
    block.attention_norm = weight_of(slot, 0);
    block.qkv = product_weight(kernels, slot, 1, 3);
    block.out = product_weight(kernels, slot, 4);
    block.mixture_norm = weight_of(slot, 5);
    if (experts > 1) block.mixture.router = product_weight(kernels, slot, 6);
  }
  block.mixture.choices = spec.shape.experts_per_token;
  block.mixture.width = spec.shape.ffn;
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    const bool held =
        spec.expert_held == nullptr || spec.expert_held[std::size_t{index} * experts + expert] != 0;
    block.mixture.experts.push_back(
        held ? expert_weights(kernels, slots.add({SlotKind::Expert, layer, expert})) : ExpertWeights());
  }
  return block;
}

}  // namespace

StageWeights make_stage_weights(const compute::StageSpec& spec, const Kernels& kernels,
                                const RouterBalance& balance, const std::vector<SlotState>& old) {
  StageWeights weights;
  Slots slots(spec, old, weights.slots);
  if (spec.embed) weights.embed = weight_of(slots.add({SlotKind::Embed, 0, 0}), 0);
  for (std::uint32_t index = 0; index < spec.layer_count; ++index) {
    weights.blocks.push_back(make_block(spec, kernels, index, slots));
    weights.blocks.back().mixture.bias = balance.bias_of(index);
  }
  if (spec.head) {
    SlotState& slot = slots.add({SlotKind::Head, 0, 0});
    weights.head.norm = weight_of(slot, 0);
    weights.head.logits = product_weight(kernels, slot, 1);
  }
  return weights;
}

}  // namespace neuroshard::model
