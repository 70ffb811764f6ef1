#include "core/engine/member_memory.h"

#include <algorithm>

#include "core/config/model_part.h"
#include "core/data/batch_plan.h"
#include "core/pipeline/stage_schedule.h"
#include "core/rounds/sync.h"

namespace neuroshard::engine {

TrainingMemoryRequest memory_request(const config::ConsensusPart& consensus, const compute::StageRange& range,
                                     bool in_rounds) {
  TrainingMemoryRequest request;
  request.shape = config::model_shape(consensus);
  request.range = range;
  request.sequences_per_step = data::sequences_per_batch(static_cast<std::uint32_t>(consensus.batch_tokens),
                                                         static_cast<std::uint32_t>(consensus.sequence));
  const std::vector<compute::StageRange> parts = config::model_parts(consensus);
  if (!parts.empty()) {
    const auto index = static_cast<std::size_t>(std::find(parts.begin(), parts.end(), range) - parts.begin());
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
  request.outer_bytes = outer_round_bytes(shape);
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

}  // namespace neuroshard::engine
