#include "core/engine/member_memory.h"

#include <algorithm>

#include "core/config/model_part.h"
#include "core/data/batch_plan.h"
#include "core/pipeline/stage_schedule.h"
#include "core/rounds/sync.h"

namespace neuroshard::engine {
namespace {

std::uint64_t largest_slot_bytes(const config::ConsensusPart& consensus, std::size_t part) {
  const compute::ModelShape shape = config::model_shape(consensus);
  const std::vector<compute::StageRange> parts = config::model_parts(consensus);
  std::uint64_t most = 0;
  for (const compute::SlotId slot :
       compute::slots_of(shape, part < parts.size() ? parts[part] : compute::whole_range(shape)))
    most = std::max(most, compute::slot_parameter_count(shape, slot));
  return sizeof(float) * most;
}

// At a change of size each slot of the other model is made of one of the present model, while training goes on (resized_state.h).
std::uint64_t resize_bytes(const config::ConsensusPart& consensus, std::size_t part) {
  std::uint64_t larger = 0;
  for (const std::uint64_t size : {consensus.size + 1, consensus.size - 1})
    if (size <= consensus.sizes.size())
      larger = std::max(larger, largest_slot_bytes(config::at_size(consensus, size), part));
  return larger == 0 ? 0 : larger + largest_slot_bytes(consensus, part);
}

}  // namespace

TrainingMemoryRequest memory_request(const config::ConsensusPart& consensus, const compute::StageRange& range,
                                     bool in_rounds) {
  TrainingMemoryRequest request;
  request.shape = config::model_shape(consensus);
  request.range = range;
  request.sequences_per_step = data::sequences_per_batch(static_cast<std::uint32_t>(consensus.batch_tokens),
                                                         static_cast<std::uint32_t>(consensus.sequence));
  const std::vector<compute::StageRange> parts = config::model_parts(consensus);
  std::size_t index = 0;
  if (!parts.empty()) {
    index = static_cast<std::size_t>(std::find(parts.begin(), parts.end(), range) - parts.begin());
    request.sequences_together = config::pipeline_sequences(consensus);
    request.max_micro_batch =
        std::min(pipeline::default_most_held,
                 config::pipeline_depth(parts.size(), index) + pipeline::default_most_due);
  }
  if (!in_rounds) return request;
  RoundShape shape;
  shape.parameters = compute::values_of(request.shape, range).count;
  shape.fragments = rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{}).fragments;
  if (const auto codec = outer::codec_from_name(consensus.codec); codec.ok()) shape.codec.codec = *codec;
  shape.error_feedback = config::is_sparse(consensus);
  request.outer_bytes = outer_round_bytes(shape) + resize_bytes(consensus, index);
  if (!parts.empty()) request.outer_bytes += config::part_payload_bytes(consensus, range);
  return request;
}

std::uint64_t member_bytes(const config::ConsensusPart& consensus, const compute::StageRange& range) {
  TrainingMemoryRequest request = memory_request(consensus, range, true);
  if (config::model_parts(consensus).empty()) request.max_micro_batch = 1;
  return unlimited_training_bytes(request);
}

std::vector<std::uint64_t> part_bytes(const config::ConsensusPart& consensus) {
  std::vector<compute::StageRange> parts = config::model_parts(consensus);
  if (parts.empty()) parts = {compute::whole_range(config::model_shape(consensus))};
  std::vector<std::uint64_t> bytes;
  for (const compute::StageRange& part : parts) bytes.push_back(member_bytes(consensus, part));
  return bytes;
}

std::uint64_t most_member_bytes(const config::ConsensusPart& consensus) {
  const std::vector<std::uint64_t> bytes = part_bytes(consensus);
  return *std::max_element(bytes.begin(), bytes.end());
}

std::optional<std::uint32_t> first_too_large(const config::ConsensusPart& consensus,
                                             const std::function<bool(std::uint32_t size)>& fits) {
  const std::vector<config::ModelGrowth>& sizes = consensus.sizes;  // after the first
  for (std::size_t i = consensus.size; i < sizes.size(); ++i) {
    if (sizes[i].member_tiers > sizes[consensus.size].member_tiers) break;
    const auto size = static_cast<std::uint32_t>(i + 1);
    if (!fits(size)) return size;
  }
  return std::nullopt;
}

}  // namespace neuroshard::engine
