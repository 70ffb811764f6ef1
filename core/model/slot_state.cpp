#include "core/model/slot_state.h"

#include "core/base/check.h"
#include "core/model/tensors.h"

namespace neuroshard::model {

SlotState make_slot_state(const compute::ModelShape& shape, compute::SlotId id, bool trainable) {
  const auto count = static_cast<std::int64_t>(compute::slot_parameter_count(shape, id));
  SlotState state;
  state.id = id;
  state.layout = compute::slot_parameters(shape, id);
  state.parameters = make_zeros({count});
  if (trainable) {
    state.gradient = make_zeros({count});
    state.moment1 = make_zeros({count});
    state.moment2 = make_zeros({count});
  }
  return state;
}

Weight weight_of(const SlotState& slot, std::size_t first, std::size_t count) {
  NS_CHECK(count > 0 && first + count <= slot.layout.size());
  const compute::ParameterInfo& head = slot.layout[first];
  std::uint64_t floats = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    NS_CHECK(slot.layout[i].offset == head.offset + floats && slot.layout[i].dims.back() == head.dims.back());
    floats += slot.layout[i].count;
  }
  const auto columns = static_cast<std::int64_t>(head.dims.back());
  const auto length = static_cast<std::int64_t>(floats);
  const auto view = [&](const at::Tensor& buffer) {
    if (!buffer.defined()) return at::Tensor();
    const at::Tensor part = buffer.narrow(0, static_cast<std::int64_t>(head.offset), length);
    return head.dims.size() == 1 && count == 1 ? part : part.view({length / columns, columns});
  };
  return {view(slot.parameters), view(slot.gradient), nullptr};
}

Weight product_weight(const Kernels& kernels, SlotState& slot, std::size_t first, std::size_t count) {
  Weight weight = weight_of(slot, first, count);
  if (kernels.element == Element::Float) return weight;
  for (const PackedRange& range : slot.packed) {
    if (range.first != first) continue;
    weight.packed = range.packed;
    return weight;
  }
  NS_CHECK(slot.packed.empty() || slot.packed.back().first + slot.packed.back().count <= first);
  weight.packed = std::make_shared<PackedWeight>(
      make_packed_weight(weight.value.size(0), weight.value.size(1), weight.gradient.defined()));
  slot.packed.push_back({first, count, weight.packed});
  return weight;
}

void pack_slot(const Kernels& kernels, SlotState& slot) {
  for (const PackedRange& range : slot.packed) {
    pack(kernels, floats(slot.parameters) + slot.layout[range.first].offset, *range.packed);
  }
}

}  // namespace neuroshard::model
