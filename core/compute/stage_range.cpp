#include "core/compute/stage_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::compute {
namespace {

std::uint64_t count_of(const ModelShape& shape, const std::vector<SlotId>& slots) {
  std::uint64_t count = 0;
  for (const SlotId slot : slots) count += slot_parameter_count(shape, slot);
  return count;
}

// The parts that are needed when none may have more than `most` parameters, each as long as possible; 0: a layer alone has
// more.
std::size_t parts_within(const std::vector<std::uint64_t>& layers, std::uint64_t most) {
  std::size_t parts = 1;
  std::uint64_t sum = 0;
  for (const std::uint64_t layer : layers) {
    if (layer > most) return 0;
    if (sum + layer > most) {
      ++parts;
      sum = 0;
    }
    sum += layer;
  }
  return parts;
}

}  // namespace

std::string to_text(const StageRange& range) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (range.embed) add("embedding");
  if (range.layer_count == 1) add(fmt::format("layer {}", range.first_layer));
  if (range.layer_count > 1)
    add(fmt::format("layers {} to {}", range.first_layer, range.first_layer + range.layer_count - 1));
  if (range.head) add("head");
  return text.empty() ? "nothing" : text;
}

StageRange whole_range(const ModelShape& shape) {
  return {0, shape.layers, true, true};
}

std::vector<SlotId> slots_of(const ModelShape& shape, const StageRange& range) {
  std::vector<SlotId> slots;
  if (range.embed) slots.push_back({SlotKind::Embed, 0, 0});
  for (std::uint32_t layer = range.first_layer; layer < range.first_layer + range.layer_count; ++layer) {
    slots.push_back({SlotKind::Layer, layer, 0});
    for (std::uint32_t expert = 0; expert < shape.experts; ++expert)
      slots.push_back({SlotKind::Expert, layer, expert});
  }
  if (range.head) slots.push_back({SlotKind::Head, 0, 0});
  return slots;
}

bool holds(const StageRange& range, SlotId slot) {
  if (slot.kind == SlotKind::Embed) return range.embed;
  if (slot.kind == SlotKind::Head) return range.head;
  return slot.layer >= range.first_layer && slot.layer < range.first_layer + range.layer_count;
}

ValueRange values_of(const ModelShape& shape, const StageRange& range) {
  const bool from_the_start = range.embed || (range.first_layer == 0 && range.layer_count == 0);
  const StageRange before{0, range.first_layer, !from_the_start, false};
  return {from_the_start ? 0 : count_of(shape, slots_of(shape, before)),
          count_of(shape, slots_of(shape, range))};
}

// The embedding goes with the first layer and the head with the last one. The smallest bound with which few enough parts are
// needed is the sum of some neighbouring layers; it is found by halving, as all are integers.
std::vector<StageRange> cut_model(const ModelShape& shape, std::size_t parts) {
  NS_CHECK(parts >= 1 && parts <= shape.layers);
  std::vector<std::uint64_t> layers;
  for (std::uint32_t i = 0; i < shape.layers; ++i)
    layers.push_back(count_of(shape, slots_of(shape, {i, 1, i == 0, i + 1 == shape.layers})));
  std::uint64_t least = *std::max_element(layers.begin(), layers.end()), most = 0;
  for (const std::uint64_t layer : layers) most += layer;
  while (least < most) {
    const std::uint64_t middle = least + (most - least) / 2;
    if (parts_within(layers, middle) <= parts)
      most = middle;
    else
      least = middle + 1;
  }
  // From the end: each part as long as the bound and the layers that the earlier parts need allow.
  std::vector<StageRange> ranges(parts);
  std::uint32_t end = shape.layers;
  for (std::size_t part = parts; part-- > 0;) {
    std::uint32_t first = end - 1;
    std::uint64_t sum = layers[first];
    while (first > part && sum + layers[first - 1] <= most) sum += layers[--first];
    ranges[part] = {first, end - first, first == 0, end == shape.layers};
    end = first;
  }
  return ranges;
}

}  // namespace neuroshard::compute
