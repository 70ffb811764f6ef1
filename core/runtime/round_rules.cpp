#include "core/runtime/round_rules.h"

#include <algorithm>

#include "core/checkpoint/writer.h"
#include "core/compute/slot.h"
#include "core/engine/training_checkpoints.h"
#include "core/engine/training_memory.h"
#include "core/rounds/sync.h"

namespace neuroshard::runtime {
namespace {

// The profile's rate that stands for the table by contributors (rounds/step.h).
constexpr std::uint64_t rate_of_the_table_nano = 700'000'000;

}  // namespace

std::vector<rounds::Fragment> part_rows(const config::ConsensusPart& consensus) {
  const compute::ModelShape shape = config::model_shape(consensus);
  std::vector<rounds::Fragment> rows;
  for (const compute::StageRange& range : config::model_parts(consensus)) {
    const compute::ValueRange values = compute::values_of(shape, range);
    rows.push_back({static_cast<std::uint32_t>(rows.size()), values.first, values.count,
                    static_cast<std::uint32_t>(consensus.inner_steps)});
  }
  return rows;
}

std::shared_ptr<engine::RoundTrainer> make_round_trainer(const config::ConsensusPart& consensus,
                                                         std::shared_ptr<Spool> spool,
                                                         const RuntimeServices& services) {
  engine::RoundTrainerOptions options;
  options.inner_steps = static_cast<std::uint32_t>(consensus.inner_steps);
  options.fragments = rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{}).fragments;
  options.parts = part_rows(consensus);
  if (const auto codec = outer::codec_from_name(consensus.codec); codec.ok()) options.codec.codec = *codec;
  if (config::is_sparse(consensus)) options.error_feedback_beta = config::sparse_error_feedback_beta;
  return std::make_shared<engine::RoundTrainer>(options, std::move(spool), services.clock, services.logger);
}

rounds::RoundShape round_shape(const config::ConsensusPart& consensus) {
  rounds::RoundShape shape;
  const std::uint32_t fragments =
      rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{}).fragments;
  const std::uint64_t parameters = compute::model_parameter_count(config::model_shape(consensus));
  shape.values = (parameters + fragments - 1) / fragments;
  const std::vector<rounds::Fragment> parts = part_rows(consensus);
  shape.taken_back = !parts.empty();
  if (!parts.empty()) shape.values = 0;
  for (const rounds::Fragment& part : parts) shape.values = std::max(shape.values, part.count);
  if (const auto codec = outer::codec_from_name(consensus.codec); codec.ok()) shape.codec.codec = *codec;
  shape.error_feedback = config::is_sparse(consensus);
  shape.group_members = static_cast<std::size_t>(consensus.group_members);
  return shape;
}

RoundTraffic round_traffic(const config::ConsensusPart& consensus, std::size_t members) {
  rounds::RoundShape shape = round_shape(consensus);
  shape.contributors = members;
  const rounds::RoundCost cost = rounds::round_cost(shape);
  const compute::ModelShape model = config::model_shape(consensus);
  // With each new anchor a checkpoint is saved, of a large model by way of a file without a name.
  const std::uint64_t checkpoint = checkpoint::Writer::estimate_bytes(model, compute::model_slots(model));
  const std::uint64_t copies = cost.resident <= engine::round_spool_memory ? 1 : 2;
  return {rounds::written_bytes(cost, engine::round_spool_memory) + copies * checkpoint, cost.sent,
          cost.received};
}

rounds::OuterRules outer_rules(const config::ConsensusPart& consensus, const Hash256& tokenizer) {
  rounds::OuterRules rules;
  if (const auto codec = outer::codec_from_name(consensus.codec); codec.ok()) rules.codec.codec = *codec;
  rules.aggregation.sparse = config::is_sparse(consensus);
  rules.mu = static_cast<float>(config::from_nano(consensus.outer_momentum_nano));
  if (consensus.outer_learning_rate_nano != rate_of_the_table_nano)
    rules.lr = static_cast<float>(config::from_nano(consensus.outer_learning_rate_nano));
  rules.architecture_version = engine::first_architecture_version + consensus.size;
  rules.tokenizer = tokenizer;
  rules.group_members = static_cast<std::size_t>(consensus.group_members);
  return rules;
}

}  // namespace neuroshard::runtime
