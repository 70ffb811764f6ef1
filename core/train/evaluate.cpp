#include "core/train/evaluate.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/compute/module.h"

namespace neuroshard::train {
namespace {

struct Sums {
  double loss = 0;
  std::uint64_t target_tokens = 0;
  std::uint64_t bytes = 0;
};

Expected<void> add_batch(compute::Stage& stage, const BatchView& batch, std::uint32_t& micro_batch,
                         const CancelToken& cancel, Sums& sums) {
  for (std::uint32_t first = 0; first < batch.sequences;) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "The evaluation was stopped.");
    const std::size_t offset = static_cast<std::size_t>(first) * batch.length;
    compute::MicroBatch micro;
    micro.batch = std::min(micro_batch, batch.sequences - first);
    micro.sequence = batch.length;
    micro.tokens = batch.tokens + offset;
    micro.targets = batch.targets + offset;
    compute::ForwardMetrics metrics;
    const compute::Status status = stage.evaluate(micro, nullptr, &metrics);
    if (!status.ok()) {
      Error error = compute::to_error(status);
      if (error.code != ErrorCode::Exhausted || micro.batch == 1) return error;
      micro_batch = 1;
      continue;
    }
    sums.loss += metrics.loss_sum;
    sums.target_tokens += metrics.target_tokens;
    first += micro.batch;
  }
  return {};
}

}  // namespace

Expected<Evaluation> evaluate(compute::Stage& stage, const EvaluationSource& source,
                              std::uint32_t micro_batch, const CancelToken& cancel) {
  NS_CHECK(micro_batch >= 1);
  Sums sums;
  while (true) {
    NS_ASSIGN_OR_RETURN(const EvaluationPart part, source());
    if (part.batch.sequences == 0) break;
    NS_RETURN_IF_ERROR(add_batch(stage, part.batch, micro_batch, cancel, sums));
    sums.bytes += part.target_bytes;
  }
  return evaluation_of(sums.loss, sums.target_tokens, sums.bytes);
}

Expected<Evaluation> evaluation_of(double loss_sum, std::uint64_t target_tokens, std::uint64_t bytes) {
  if (target_tokens == 0) {
    return make_error(ErrorCode::InvalidArgument,
                      "There is no held-out text to evaluate on: give more text, at least a few pages.");
  }
  if (!std::isfinite(loss_sum)) {
    return make_error(
        ErrorCode::Corrupt,
        "The held-out loss is not a finite number: the model has diverged. Restore an earlier checkpoint.");
  }
  Evaluation result;
  result.loss = loss_sum / static_cast<double>(target_tokens);
  result.target_tokens = target_tokens;
  result.bytes = bytes;
  if (bytes > 0) result.bits_per_byte = loss_sum / std::log(2.0) / static_cast<double>(bytes);
  return result;
}

}  // namespace neuroshard::train
