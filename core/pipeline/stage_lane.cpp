#include "core/pipeline/stage_lane.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/check.h"
#include "core/compute/module.h"

namespace neuroshard::pipeline {
namespace {

std::vector<std::int32_t> read_ids(ByteSpan bytes) {
  std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(std::int32_t));
  return ids;
}

// The stage's means over its layers become sums, as another stage has another number of layers.
Sums sums_of(const compute::ForwardMetrics& metrics, const StageRange& range) {
  Sums sums;
  sums.tokens = metrics.tokens;
  sums.target_tokens = range.head ? metrics.target_tokens : 0;
  sums.loss = metrics.loss_sum;
  sums.balance = metrics.balance_sum * range.layer_count;
  sums.z = metrics.z_sum * range.layer_count;
  return sums;
}

bool finite(const Sums& sums) {
  return std::isfinite(sums.loss) && std::isfinite(sums.balance) && std::isfinite(sums.z);
}

}  // namespace

StageLane::StageLane(compute::Stage& stage, const StageRange& range, const compute::ModelShape& shape,
                     StepRule rule, Events events)
    : stage_(stage),
      range_(range),
      hidden_(shape.hidden),
      rule_(std::move(rule)),
      events_(std::move(events)) {
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) slots_.push_back({stage.slot(i).id});
}

Expected<StageLane::Passed> StageLane::forward(std::uint64_t id, std::uint32_t sequences,
                                               std::uint32_t length, WireFormat wire, ByteSpan payload) {
  const std::size_t tokens = std::size_t{sequences} * length, id_bytes = tokens * sizeof(std::int32_t);
  const std::vector<std::int32_t> targets = read_ids(payload.first(id_bytes));
  const ByteSpan rest = payload.subspan(id_bytes);
  const std::vector<std::int32_t> ids = range_.embed ? read_ids(rest) : std::vector<std::int32_t>();
  compute::MicroBatch batch;
  batch.batch = sequences;
  batch.sequence = length;
  batch.targets = targets.data();
  batch.tokens = range_.embed ? ids.data() : nullptr;
  if (!range_.embed) {
    rows_in_.resize(tokens * hidden_);
    if (auto read = read_rows(wire, rest, hidden_, {rows_in_.data(), rows_in_.size()}); !read.ok())
      return read.error();
    batch.input = rows_in_.data();
  }
  rows_out_.resize(range_.head ? 0 : tokens * hidden_);
  compute::ForwardMetrics metrics;
  const compute::Status status =
      stage_.forward(id, batch, range_.head ? nullptr : rows_out_.data(), &metrics);
  if (!status.ok()) return compute::to_error(status);
  kept_.insert(id);
  Passed passed{sums_of(metrics, range_), {}};
  Expected<void> written;
  if (!finite(passed.sums)) written = make_error(ErrorCode::Corrupt, "the loss is not a finite number");
  if (written.ok() && range_.head) {
    auto gradient = input_gradient(id, tokens, wire, nullptr);
    if (!gradient.ok()) return gradient.error();
    passed.output = std::move(gradient).value();
    return passed;
  }
  if (written.ok()) written = append_rows(wire, {rows_out_.data(), rows_out_.size()}, hidden_, passed.output);
  if (!written.ok()) {
    discard(id);
    return written.error();
  }
  return passed;
}

Expected<Bytes> StageLane::backward(std::uint64_t id, std::uint64_t tokens, WireFormat wire, ByteSpan rows) {
  rows_in_.resize(tokens * hidden_);
  if (auto read = read_rows(wire, rows, hidden_, {rows_in_.data(), rows_in_.size()}); !read.ok()) {
    discard(id);
    return read.error();
  }
  return input_gradient(id, tokens, wire, rows_in_.data());
}

Expected<Bytes> StageLane::input_gradient(std::uint64_t id, std::uint64_t tokens, WireFormat wire,
                                          const float* output) {
  rows_out_.resize(range_.embed ? 0 : tokens * hidden_);
  const compute::Status status = stage_.backward_input(id, output, range_.embed ? nullptr : rows_out_.data());
  Bytes bytes;
  Expected<void> written;
  if (!status.ok()) written = compute::to_error(status);
  if (written.ok()) written = append_rows(wire, {rows_out_.data(), rows_out_.size()}, hidden_, bytes);
  if (!written.ok()) {
    discard(id);
    return written.error();
  }
  return bytes;
}

Expected<void> StageLane::weights(std::uint64_t id) {
  const compute::Status status = stage_.backward_weights(id);
  kept_.erase(id);
  if (!status.ok()) return compute::to_error(status);
  return {};
}

void StageLane::discard(std::uint64_t id) {
  stage_.discard(id);
  kept_.erase(id);
}

void StageLane::drop_gradients() {
  for (const std::uint64_t id : kept_) stage_.discard(id);
  kept_.clear();
  stage_.zero_gradients();
}

Expected<StageLane::Stepped> StageLane::step(std::uint64_t targets, const Sums& sums) {
  std::vector<compute::SlotStep> steps(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    steps[i].slot = static_cast<std::uint32_t>(i);
    steps[i].options = rule_(slots_[i].id, slots_[i].steps + 1);
    steps[i].options.tokens = targets;
    steps[i].options.step = slots_[i].steps + 1;
  }
  if (events_.before_step) events_.before_step();
  compute::StepMetrics metrics;
  const compute::Status status =
      stage_.step_slots(static_cast<std::uint32_t>(steps.size()), steps.data(), &metrics);
  if (!status.ok()) {
    stage_.zero_gradients();
    return compute::to_error(status);
  }
  std::uint64_t lowest = UINT64_MAX;
  for (SlotCount& slot : slots_) lowest = std::min(lowest, ++slot.steps);
  const Stepped stepped{lowest, metrics.gradient_norm, metrics.clipped_slots};
  if (events_.stepped) events_.stepped(stepped, targets, sums);
  return stepped;
}

void StageLane::set_step(compute::SlotId slot, std::uint64_t number) {
  for (SlotCount& own : slots_)
    if (own.id == slot) own.steps = number;
}

}  // namespace neuroshard::pipeline
