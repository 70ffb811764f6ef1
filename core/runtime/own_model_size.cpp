#include "core/runtime/own_model_size.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/compute/slot.h"
#include "core/config/model_part.h"
#include "core/config/model_size.h"
#include "core/engine/initial_weights.h"
#include "core/engine/resized_state.h"
#include "core/engine/training_checkpoints.h"

namespace neuroshard::runtime {
namespace {

// Between the end of a computation and its use.
constexpr Duration settle_time = std::chrono::seconds(2);
constexpr Duration retry_pause = std::chrono::seconds(30);

compute::StageRange range_of(const config::ConsensusPart& consensus, std::uint32_t row) {
  const std::vector<compute::StageRange> parts = config::model_parts(consensus);
  return parts.empty() ? compute::whole_range(config::model_shape(consensus)) : parts.at(row);
}

}  // namespace

OwnModelSize::OwnModelSize(const config::ConsensusPart& consensus, const Hash256& network,
                           std::string directory, storage::FileEnv& files, Logger& logger)
    : consensus_(consensus),
      network_(network),
      directory_(std::move(directory)),
      files_(files),
      logger_(logger) {}

rounds::ResizeRow OwnModelSize::resize() const {
  if (consensus_.sizes.empty()) return nullptr;
  return [from = consensus_, network = network_](std::uint32_t row, std::uint32_t size,
                                                 const rounds::OuterState& state, Spool& spool) {
    const config::ConsensusPart to = config::at_size(from, size);
    return engine::resized_state(
        config::model_shape(from), range_of(from, row), config::model_shape(to), range_of(to, row),
        engine::initial_seed(network, engine::first_architecture_version + size), state, spool);
  };
}

void OwnModelSize::follow(const chain::Registry& registry, const rounds::TrainingView& training,
                          bool larger_fits, MonotonicTime now) {
  const bool waited = std::exchange(waits_, registry.size().size > size() && !larger_fits);
  if (waited && registry.size().size == size()) changed_ = true;
  if (registry.size().size == size() || changed_ || waits_) return other_since_.reset();
  if (!other_since_) other_since_ = now;
  if (training.holds || (!training.computes && now - *other_since_ >= settle_time))
    change(registry.size().size, now);
}

bool OwnModelSize::can_begin(bool has_history, MonotonicTime now) {
  if (has_history || size() == 0) return true;
  begins_anew_ = true;
  change(0, now);
  return false;
}

void OwnModelSize::try_again(MonotonicTime now) {
  if (begins_anew_ && !changed_) change(0, now);
}

void OwnModelSize::lacks_memory(MonotonicTime now) {
  if (size() == 0 || changed_ || !keep(size() - 1, now)) return;
  logger_.warning(
      "rounds",
      "the network's model has no room in this node's memory: the node starts anew with the model "
      "of the size before, and follows the network until that is its model again");
  changed_ = true;
}

bool OwnModelSize::keep(std::uint32_t size, MonotonicTime now) {
  if (failed_at_ && now - *failed_at_ < retry_pause) return false;
  if (const auto kept = config::keep_size(directory_, files_, consensus_, size); !kept.ok()) {
    logger_.error("rounds",
                  "the new size of the model can't be saved, so this node waits: " + kept.error().describe());
    failed_at_ = now;
    return false;
  }
  return true;
}

void OwnModelSize::change(std::uint32_t size, MonotonicTime now) {
  if (!keep(size, now)) return;
  const compute::ModelShape shape = config::model_shape(config::at_size(consensus_, size));
  logger_.info(
      "rounds",
      fmt::format("the network's model has {} layers of width {} now, {} parameters: this node starts "
                  "anew with it",
                  shape.layers, shape.hidden, compute::model_parameter_count(shape)));
  changed_ = true;
}

}  // namespace neuroshard::runtime
