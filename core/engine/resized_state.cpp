#include "core/engine/resized_state.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/compute/growth.h"
#include "core/outer/values.h"

namespace neuroshard::engine {
namespace {

using compute::ModelShape;
using compute::SlotId;
using compute::StageRange;

struct ShapeChange {
  const ModelShape& from;
  const ModelShape& to;
  bool grows = true;

  std::optional<SlotId> source(SlotId slot) const {
    return grows ? compute::grown_from(from, to, slot) : compute::shrunk_from(to, from, slot);
  }
  void weights(SlotId slot, Span<const float> old, const Hash256& seed, Span<float> values) const {
    if (grows)
      compute::grow_slot(from, to, slot, old, seed, values);
    else
      compute::shrink_slot(to, from, slot, old, values);
  }
  void momentum(SlotId slot, Span<const float> old, Span<float> values) const {
    if (grows)
      compute::grow_momentum(from, to, slot, old, values);
    else
      compute::shrink_slot(to, from, slot, old, values);
  }
};

Expected<ShapeChange> change_between(const ModelShape& from, const ModelShape& to) {
  const Expected<void> growth = compute::check_growth(from, to);
  if (growth.ok()) return ShapeChange{from, to, true};
  const Expected<void> reverse = compute::check_growth(to, from);
  if (reverse.ok()) return ShapeChange{from, to, false};
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("one of the two shapes has to continue the other, but {}; the other way "
                                "round, {}",
                                growth.error().message, reverse.error().message));
}

Expected<void> check_state(const outer::AnchorCounts& counts, std::uint64_t expected) {
  if (counts.bias != 0)
    return make_error(ErrorCode::Unsupported,
                      "a state with a balancing bias can't be resized; balance the experts by the loss");
  if (counts.weights != expected || counts.momentum != expected)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the state has {} weights and {} values of momentum, but its range has {}; "
                                  "give the range that the state is of",
                                  counts.weights, counts.momentum, expected));
  return {};
}

// A slot of the new range, and where the values stand that it continues; a slot of a new layer has none.
struct SlotSource {
  SlotId slot;
  std::uint64_t first = 0, count = 0;
};

// Both ranges are in the same order and layers don't overtake each other, so one walk finds all sources.
Expected<std::vector<SlotSource>> sources_of(const ShapeChange& change, const StageRange& from_range,
                                             const StageRange& to_range) {
  const std::vector<SlotId> held = compute::slots_of(change.from, from_range);
  std::vector<SlotSource> sources;
  auto next = held.begin();
  std::uint64_t first = 0;
  for (const SlotId slot : compute::slots_of(change.to, to_range)) {
    const std::optional<SlotId> source = change.source(slot);
    if (!source) {
      sources.push_back({slot, 0, 0});
      continue;
    }
    for (; next != held.end() && *next != *source; ++next)
      first += compute::slot_parameter_count(change.from, *next);
    if (next == held.end())
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the state of {} lacks {}, which {} of the new shape continues; give a "
                                    "range that has it",
                                    to_text(from_range), to_string(*source), to_string(slot)));
    sources.push_back({slot, first, compute::slot_parameter_count(change.from, *source)});
  }
  return sources;
}

// Each slot has buffers of its own: a vector that grows holds its values twice for a moment.
template <class Compute>
Expected<void> write_slots(const ModelShape& shape, const std::vector<SlotSource>& sources,
                           const outer::ValueSource& before, const outer::WriteValues& write,
                           Compute compute) {
  std::uint64_t at = 0;
  for (const SlotSource& source : sources) {
    std::vector<float> old(static_cast<std::size_t>(source.count));
    if (!old.empty()) NS_RETURN_IF_ERROR(before.read(source.first, old));
    std::vector<float> values(static_cast<std::size_t>(compute::slot_parameter_count(shape, source.slot)));
    compute(source.slot, Span<const float>(old), Span<float>(values));
    NS_RETURN_IF_ERROR(write(at, values));
    at += values.size();
  }
  return {};
}

}  // namespace

Expected<rounds::Anchor> resized_state(const ModelShape& from, const StageRange& from_range,
                                       const ModelShape& to, const StageRange& to_range, const Hash256& seed,
                                       const rounds::OuterState& state, Spool& spool) {
  NS_ASSIGN_OR_RETURN(const ShapeChange change, change_between(from, to));
  NS_RETURN_IF_ERROR(check_state(state.counts, compute::values_of(from, from_range).count));
  NS_ASSIGN_OR_RETURN(const std::vector<SlotSource> sources, sources_of(change, from_range, to_range));
  const outer::AnchorCounts counts = rounds::state_counts(compute::values_of(to, to_range).count, 0);
  const std::uint64_t bytes = rounds::state_bytes(counts);
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, spool.create(bytes));
  NS_RETURN_IF_ERROR(write_slots(to, sources, state.weights(), outer::write_to(*item, 0),
                                 [&](SlotId slot, Span<const float> old, Span<float> values) {
                                   change.weights(slot, old, seed, values);
                                 }));
  NS_RETURN_IF_ERROR(write_slots(
      to, sources, state.momentum(), outer::write_to(*item, sizeof(float) * counts.weights),
      [&](SlotId slot, Span<const float> old, Span<float> values) { change.momentum(slot, old, values); }));
  NS_ASSIGN_OR_RETURN(ByteSourcePtr resized, item->finish(bytes));
  return std::make_shared<const rounds::OuterState>(rounds::OuterState{counts, std::move(resized)});
}

}  // namespace neuroshard::engine
