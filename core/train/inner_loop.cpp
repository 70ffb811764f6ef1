#include "core/train/inner_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/compute/module.h"

namespace neuroshard::train {
namespace {

Error not_finite(const char* what, std::uint64_t step) {
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("The {} of step {} is not a finite number; the step was not applied. Restore an earlier "
                  "checkpoint and continue with a lower learning rate.",
                  what, step));
}

Error out_of_memory(std::uint64_t step, const Error& cause) {
  return make_error(
      ErrorCode::Exhausted,
      fmt::format("Step {} does not fit into memory even with one sequence at a time ({}). Raise the "
                  "memory limit, close other programs, or train a smaller model.",
                  step, cause.message));
}

bool finite(const compute::ForwardMetrics& metrics) {
  return std::isfinite(metrics.loss_sum) && std::isfinite(metrics.balance_sum) &&
         std::isfinite(metrics.z_sum);
}

// The sequences [first, first + count) of a batch.
compute::MicroBatch cut(const BatchView& batch, std::uint32_t first, std::uint32_t count) {
  const std::size_t offset = static_cast<std::size_t>(first) * batch.length;
  compute::MicroBatch micro;
  micro.batch = count;
  micro.sequence = batch.length;
  micro.tokens = batch.tokens + offset;
  micro.targets = batch.targets + offset;
  return micro;
}

}  // namespace

InnerLoop::InnerLoop(compute::Stage& stage, const Clock& clock, Logger& logger, std::uint32_t micro_batch)
    : stage_(stage), clock_(clock), logger_(logger), micro_batch_(micro_batch) {
  NS_CHECK(micro_batch >= 1);
}

void InnerLoop::set_micro_batch(std::uint32_t sequences) {
  NS_CHECK(sequences >= 1);
  micro_batch_ = sequences;
}

// Forward and backward of every micro-batch. On an error what the stage kept of this attempt is dropped.
Expected<InnerStep> InnerLoop::accumulate(const BatchView& batch, std::uint64_t step,
                                          const CancelToken& cancel) {
  compute::ForwardMetrics sum;
  InnerStep result;
  result.micro_batch = std::min(micro_batch_, batch.sequences);
  for (std::uint32_t first = 0; first < batch.sequences; first += result.micro_batch) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "Training was stopped.");
    const compute::MicroBatch micro =
        cut(batch, first, std::min(result.micro_batch, batch.sequences - first));
    const std::uint64_t id = next_id_++;
    compute::ForwardMetrics metrics;
    compute::Status status = stage_.forward(id, micro, nullptr, &metrics);
    if (status.ok() && !finite(metrics)) {
      stage_.discard(id);
      return not_finite("loss", step);
    }
    if (status.ok()) status = stage_.backward(id, nullptr, nullptr);
    if (!status.ok()) {
      stage_.discard(id);
      return compute::to_error(status);
    }
    sum.tokens += metrics.tokens;
    sum.target_tokens += metrics.target_tokens;
    sum.loss_sum += metrics.loss_sum;
    sum.balance_sum += metrics.balance_sum;
    sum.z_sum += metrics.z_sum;
    ++result.micro_batches;
  }
  if (sum.target_tokens == 0) {
    return make_error(ErrorCode::InvalidArgument, "The batch has no token to predict: give more text.");
  }
  result.tokens = sum.tokens;
  result.target_tokens = sum.target_tokens;
  result.loss = sum.loss_sum / static_cast<double>(sum.target_tokens);
  result.balance = sum.balance_sum / static_cast<double>(sum.tokens);
  result.z = sum.z_sum / static_cast<double>(sum.tokens);
  return result;
}

Expected<InnerStep> InnerLoop::step(const BatchView& batch, compute::StepOptions options,
                                    const CancelToken& cancel) {
  if (batch.sequences == 0 || batch.length == 0) {
    return make_error(ErrorCode::InvalidArgument, "The batch is empty: give more text.");
  }
  const MonotonicTime begin = clock_.monotonic_now();
  Expected<InnerStep> attempt = accumulate(batch, options.step, cancel);
  std::uint32_t retries = 0;
  while (!attempt.ok()) {
    stage_.zero_gradients();
    if (attempt.error().code != ErrorCode::Exhausted) return attempt;
    const std::uint32_t tried = std::min(micro_batch_, batch.sequences);
    if (tried <= 1) return out_of_memory(options.step, attempt.error());
    micro_batch_ = tried / 2;
    ++retries;
    logger_.warning(
        "train", fmt::format("Step {} did not fit into memory with {} sequences at a time ({}); trying {}.",
                             options.step, tried, attempt.error().message, micro_batch_));
    attempt = accumulate(batch, options.step, cancel);
  }
  const MonotonicTime accumulated = clock_.monotonic_now();
  if (before_update_) before_update_();
  const MonotonicTime free = before_update_ ? clock_.monotonic_now() : accumulated;

  InnerStep result = std::move(attempt).value();
  options.tokens = result.target_tokens;
  compute::StepMetrics metrics;
  const compute::Status status = stage_.step(options, &metrics);
  if (!status.ok()) {
    stage_.zero_gradients();
    Error error = compute::to_error(status);
    // The stage refuses a gradient that is not finite before it touches a weight.
    if (error.code == ErrorCode::Corrupt) return not_finite("gradient", options.step);
    return error;
  }
  if (!std::isfinite(metrics.gradient_norm)) {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("The gradient of step {} was not a finite number and has damaged "
                                  "the weights. Restore the newest checkpoint.",
                                  options.step));
  }
  result.gradient_norm = metrics.gradient_norm;
  result.clipped_slots = metrics.clipped_slots;
  result.retries = retries;
  result.seconds_forward_backward = to_seconds(accumulated - begin);
  result.seconds_held = to_seconds(free - accumulated);
  result.seconds_optimizer = to_seconds(clock_.monotonic_now() - free);
  return result;
}

}  // namespace neuroshard::train
