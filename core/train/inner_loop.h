// One inner training step (docs/protocol/model.md): a whole batch is cut into micro-batches, each goes
// forward and backward, then the optimizer steps once on gradients divided by the batch's target tokens.
// Knows a stage that holds a whole model; the device, its kernels and AdamW are behind compute::Stage, so
// tests and simulators run this very loop over a fake one.
//
// Repeatable: the same weights, batch, options, micro-batch size and number of threads give the same bits.
// Another number of threads may sum a product in another order: equal to rounding only.
// All or nothing: after any error the weights, moments and step count are as before and the gradients are
// zero. Threads: the stage's compute thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/compute/stage.h"
#include "core/train/batch_view.h"

namespace neuroshard::train {

// Means are per token, in nats where they are entropies.
struct InnerStep {
  double loss = 0;                  // cross-entropy per target token
  double balance = 0;               // load balance, minimum 1; 0 for a dense model
  double z = 0;                     // router z-loss without its coefficient
  double gradient_norm = 0;         // before clipping
  std::uint64_t tokens = 0;         // positions that went through the model
  std::uint64_t target_tokens = 0;  // positions with a loss
  std::uint32_t clipped_slots = 0;
  std::uint32_t micro_batch = 0;  // sequences at once, of the attempt that succeeded
  std::uint32_t micro_batches = 0;
  std::uint32_t retries = 0;  // attempts given up for want of memory
  double seconds_forward_backward = 0;
  double seconds_optimizer = 0;
  double seconds_held = 0;  // in before_update
};

class InnerLoop {
 public:
  // The stage holds embedding, all layers and head; it, the clock and the logger outlive the loop.
  // micro_batch ≥ 1.
  InnerLoop(compute::Stage& stage, const Clock& clock, Logger& logger, std::uint32_t micro_batch);

  // options: tokens is filled in here; the rest is the caller's.
  // Errors, each with nothing applied:
  //   Cancelled  the token was set; looked at before every micro-batch, so a stop takes at most one of them
  //   Exhausted  not even one sequence at a time fits (larger micro-batches were halved and retried, with a
  //   log line) Corrupt    the loss or the gradient is not finite; the message says what to do
  //   InvalidArgument  an empty batch, or one without a target
  //   else what the stage reports.
  Expected<InnerStep> step(const BatchView& batch, compute::StepOptions options, const CancelToken& cancel);

  // Sequences per micro-batch; falls when memory runs out and stays there.
  std::uint32_t micro_batch() const { return micro_batch_; }
  void set_micro_batch(std::uint32_t sequences);

  // Called in every step between the passes and the optimizer, on this thread: the last moment at which
  // weights and moments are still those of the step before. May be null.
  void set_before_update(std::function<void()> call) { before_update_ = std::move(call); }

 private:
  Expected<InnerStep> accumulate(const BatchView& batch, std::uint64_t step, const CancelToken& cancel);

  compute::Stage& stage_;
  const Clock& clock_;
  Logger& logger_;
  std::uint32_t micro_batch_;
  std::function<void()> before_update_;
  std::uint64_t next_id_ = 1;  // of micro-batches, unique for the life of the loop
};

}  // namespace neuroshard::train
