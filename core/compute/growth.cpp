#include "core/compute/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace neuroshard::compute {
namespace {

Error in_the_way(const char* what, std::uint64_t before, std::uint64_t after) {
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("a model grows in layers and width only; its {} of {} can't become {}", what,
                                before, after));
}

// Outputs into the residual stream, and the embedding, write nothing that the smaller model does not.
bool new_part_is_zero(const ParameterInfo& parameter, SlotId slot) {
  return parameter.init == Init::ResidualNormal || slot.kind == SlotKind::Embed;
}

double gain_scale(const ModelShape& before, const ModelShape& after) {
  return std::sqrt(static_cast<double>(before.hidden) / static_cast<double>(after.hidden));
}

// Copies the values that both slots have: of each matrix the block at the top left, of each norm the first gains, scaled. The map
// is linear, and the same in both directions. All other values stay.
void carry(const ModelShape& before, SlotId from, Span<const float> old, const ModelShape& after, SlotId to,
           Span<float> values) {
  NS_CHECK(old.size() == slot_parameter_count(before, from));
  NS_CHECK(values.size() == slot_parameter_count(after, to));
  const double scale = gain_scale(before, after);
  const std::vector<ParameterInfo> sources = slot_parameters(before, from);
  const std::vector<ParameterInfo> targets = slot_parameters(after, to);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::vector<std::uint64_t>& had = sources[i].dims;
    const std::vector<std::uint64_t>& has = targets[i].dims;
    const float* source = old.data() + sources[i].offset;
    float* target = values.data() + targets[i].offset;
    const std::uint64_t rows = std::min(had[0], has[0]);
    if (targets[i].init == Init::One) {
      for (std::uint64_t row = 0; row < rows; ++row)
        target[row] = static_cast<float>(scale * static_cast<double>(source[row]));
      continue;
    }
    const std::uint64_t columns = std::min(had[1], has[1]);
    for (std::uint64_t row = 0; row < rows; ++row)
      std::copy_n(source + row * had[1], columns, target + row * has[1]);
  }
}

}  // namespace

Expected<void> check_growth(const ModelShape& smaller, const ModelShape& larger) {
  const struct {
    const char* what;
    std::uint64_t before, after;
    bool may_grow;
  } dimensions[] = {
      {"layers", smaller.layers, larger.layers, true},
      {"width", smaller.hidden, larger.hidden, true},
      {"heads", smaller.heads, larger.heads, true},
      {"width of an expert", smaller.ffn, larger.ffn, true},
      {"dimensions of a head", smaller.head_dim, larger.head_dim, false},
      {"experts", smaller.experts, larger.experts, false},
      {"experts per token", smaller.experts_per_token, larger.experts_per_token, false},
      {"context", smaller.sequence, larger.sequence, true},
      {"vocabulary", smaller.vocab, larger.vocab, false},
  };
  for (const auto& dimension : dimensions) {
    if (dimension.may_grow ? dimension.after < dimension.before : dimension.after != dimension.before)
      return in_the_way(dimension.what, dimension.before, dimension.after);
  }
  // Each head keeps its key head.
  const std::uint32_t group = smaller.heads / smaller.kv_heads, new_group = larger.heads / larger.kv_heads;
  for (std::uint32_t head = 0; head < smaller.heads; ++head)
    if (head / group != head / new_group) return in_the_way("heads per key head", group, new_group);
  if (smaller.rope_theta != larger.rope_theta || smaller.rms_epsilon != larger.rms_epsilon)
    return make_error(ErrorCode::InvalidArgument,
                      "a model keeps its rotation base and norm epsilon when it grows");
  return {};
}

std::optional<SlotId> grown_from(const ModelShape& smaller, const ModelShape& larger, SlotId slot) {
  if (slot.kind == SlotKind::Embed || slot.kind == SlotKind::Head) return slot;
  const std::uint64_t few = smaller.layers, many = larger.layers;
  const std::uint64_t old = (slot.layer * few + many - 1) / many;  // the first one that can be there
  if (old >= few || old * many / few != slot.layer) return std::nullopt;
  return SlotId{slot.kind, static_cast<std::uint32_t>(old), slot.expert};
}

void grow_slot(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
               const Hash256& seed, Span<float> values) {
  const std::optional<SlotId> from = grown_from(smaller, larger, slot);
  NS_CHECK(from || old.empty());
  initialise_slot(larger, slot, seed, values);
  for (const ParameterInfo& parameter : slot_parameters(larger, slot)) {
    const Span<float> target = values.subspan(parameter.offset, parameter.count);
    if (new_part_is_zero(parameter, slot)) std::fill(target.begin(), target.end(), 0.0f);
    if (from && parameter.init == Init::One)
      std::fill(target.begin(), target.end(), static_cast<float>(gain_scale(smaller, larger)));
  }
  if (from) carry(smaller, *from, old, larger, slot, values);
}

void grow_momentum(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
                   Span<float> values) {
  const std::optional<SlotId> from = grown_from(smaller, larger, slot);
  NS_CHECK(from || old.empty());
  NS_CHECK(values.size() == slot_parameter_count(larger, slot));
  std::fill(values.begin(), values.end(), 0.0f);
  if (from) carry(smaller, *from, old, larger, slot, values);
}

SlotId shrunk_from(const ModelShape& smaller, const ModelShape& larger, SlotId slot) {
  if (slot.kind == SlotKind::Embed || slot.kind == SlotKind::Head) return slot;
  const std::uint64_t many = larger.layers;
  return {slot.kind, static_cast<std::uint32_t>(slot.layer * many / smaller.layers), slot.expert};
}

void shrink_slot(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
                 Span<float> values) {
  carry(larger, shrunk_from(smaller, larger, slot), old, smaller, slot, values);
}

}  // namespace neuroshard::compute
