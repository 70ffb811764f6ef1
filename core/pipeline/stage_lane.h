// The computation of a stage's jobs, on the compute thread: bytes of the wire in, bytes of the wire out. A stage that
// generates or trains alone uses the same thread, so jobs of a pipeline wait for at most one job of others.
//
// Each slot has a step number and options of its own, because a slot that was fetched later is at another step than
// its neighbours (docs/protocol/pipeline.md#steps).
//
// Errors of a job: Exhausted (memory), Corrupt (values that are not finite: nothing was applied), what the stage
// reports else.  Threads: made and destroyed anywhere; all else on the compute thread, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/pipeline/messages.h"

namespace neuroshard::pipeline {

// Learning rate, weight decay and so on of a slot's next step; tokens and step are filled in by the lane.
using StepRule = std::function<compute::StepOptions(compute::SlotId slot, std::uint64_t step)>;

class StageLane {
 public:
  struct Stepped {
    std::uint64_t step = 0;  // the lowest of the slots'
    double gradient_norm = 0;
    std::uint32_t clipped_slots = 0;
  };
  // Called around a step, on the compute thread. Null: nobody listens.
  struct Events {
    std::function<void()> before_step;  // weights and moments are still those of the step before
    // sums: of the step's micro-batches, from this stage to the head.
    std::function<void(const Stepped&, std::uint64_t targets, const Sums& sums)> stepped;
  };
  // stage: of `range`; outlives the lane.
  StageLane(compute::Stage& stage, const StageRange& range, const compute::ModelShape& shape, StepRule rule,
            Events events = {});

  const StageRange& range() const { return range_; }  // any thread

  struct Passed {
    Sums sums;  // of this stage
    Bytes
        output;  // rows for the next stage; of the head: rows of the gradient of its input, as backward() gives
  };
  // payload: of a Work message, of the size that it demands. With the head the job goes on to the gradient of the
  // input.
  Expected<Passed> forward(std::uint64_t id, std::uint32_t sequences, std::uint32_t length, WireFormat wire,
                           ByteSpan payload);
  // rows: the gradient of the output. Returns the gradient of the input, nothing with the embedding.
  Expected<Bytes> backward(std::uint64_t id, std::uint64_t tokens, WireFormat wire, ByteSpan rows);
  Expected<void> weights(std::uint64_t id);
  void discard(std::uint64_t id);
  void drop_gradients();  // those of all weights, and what is kept

  // sums: for the events only.
  Expected<Stepped> step(std::uint64_t targets, const Sums& sums = {});
  // The next step of the slot is number + 1. Every slot begins with 0.
  void set_step(compute::SlotId slot, std::uint64_t number);

 private:
  struct SlotCount {
    compute::SlotId id;
    std::uint64_t steps = 0;
  };
  Expected<Bytes> input_gradient(std::uint64_t id, std::uint64_t tokens, WireFormat wire,
                                 const float* output);

  compute::Stage& stage_;
  const StageRange range_;
  const std::size_t hidden_;
  const StepRule rule_;
  const Events events_;
  std::vector<SlotCount> slots_;
  std::set<std::uint64_t> kept_;           // micro-batches whose activations the stage holds
  std::vector<float> rows_in_, rows_out_;  // kept to take no memory for each job
};

}  // namespace neuroshard::pipeline
