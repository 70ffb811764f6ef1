// Mean loss over given text without training on it: what users see as held-out loss (docs/protocol/data.md).
// Bits per byte compare across tokenizers, nats per token do not.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/train/batch_view.h"

namespace neuroshard::train {

struct Evaluation {
  double loss = 0;  // nats per target token
  std::uint64_t target_tokens = 0;
  std::uint64_t bytes = 0;   // of text that the target tokens stand for; 0 = unknown
  double bits_per_byte = 0;  // loss sum / ln 2 / bytes; 0 when bytes is 0
};

// A piece of the text to evaluate.
struct EvaluationPart {
  BatchView batch;                 // stays valid until the source is asked again
  std::uint64_t target_bytes = 0;  // of text that its targets stand for; 0 = unknown
};
// Gives the next piece, or one whose batch has no sequences at the end.
using EvaluationSource = std::function<Expected<EvaluationPart>()>;

// Of a sum of losses in nats. Errors: InvalidArgument when there is no target at all; Corrupt when the loss is not finite.
Expected<Evaluation> evaluation_of(double loss_sum, std::uint64_t target_tokens, std::uint64_t bytes);

// Runs every piece through the stage, `micro_batch` sequences at a time; when that does not fit into memory,
// one at a time from there on. Weights, gradients and what the stage keeps are untouched. Errors:
// those of evaluation_of(); Cancelled (looked at before every micro-batch); what source and stage report.  Threads: the
// stage's compute thread.
Expected<Evaluation> evaluate(compute::Stage& stage, const EvaluationSource& source,
                              std::uint32_t micro_batch, const CancelToken& cancel);

}  // namespace neuroshard::train
