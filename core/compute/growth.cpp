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

// Of a matrix with old_columns, the block at the top left.
void copy_block(Span<const float> old, std::uint64_t old_columns, std::uint64_t columns, Span<float> values) {
  const std::uint64_t rows = old.size() / old_columns;
  for (std::uint64_t row = 0; row < rows; ++row)
    std::copy_n(old.data() + row * old_columns, old_columns, values.data() + row * columns);
}

// Outputs into the residual stream, and the embedding, write nothing that the smaller model does not.
bool new_part_is_zero(const ParameterInfo& parameter, SlotId slot) {
  return parameter.init == Init::ResidualNormal || slot.kind == SlotKind::Embed;
}

void scale_gain(const ModelShape& smaller, const ModelShape& larger, Span<const float> old,
                Span<float> values) {
  const double ratio = std::sqrt(static_cast<double>(smaller.hidden) / static_cast<double>(larger.hidden));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(ratio * (i < old.size() ? static_cast<double>(old[i]) : 1.0));
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
  NS_CHECK(old.size() == (from ? slot_parameter_count(smaller, *from) : 0));
  initialise_slot(larger, slot, seed, values);
  const std::vector<ParameterInfo> after = slot_parameters(larger, slot);
  const std::vector<ParameterInfo> before =
      from ? slot_parameters(smaller, *from) : std::vector<ParameterInfo>();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Span<float> target = values.subspan(after[i].offset, after[i].count);
    if (new_part_is_zero(after[i], slot)) std::fill(target.begin(), target.end(), 0.0f);
    if (!from) continue;
    const Span<const float> source = old.subspan(before[i].offset, before[i].count);
    if (after[i].init == Init::One) {
      scale_gain(smaller, larger, source, target);
    } else {
      copy_block(source, before[i].dims[1], after[i].dims[1], target);
    }
  }
}

}  // namespace neuroshard::compute
