// The held-out loss of a model of which this node holds a part. Its text passes the holders of all parts with the newest
// round's certified weights (pipeline_texts.h), while this node trains on. When a round ends meanwhile, it begins anew.
//
// Threads: the compute thread. Answers come on the pipeline's executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/expected.h"
#include "core/engine/pipeline_texts.h"
#include "core/train/evaluate.h"

namespace neuroshard::engine {

class PartEvaluation {
 public:
  static constexpr std::uint32_t most_restarts = 3;

  struct Text {
    std::uint32_t length = 0;  // tokens of a sequence
    std::vector<pipeline::MicroBatchText> pieces;
    std::uint64_t bytes = 0;  // of text that its targets stand for
  };

  // texts outlives all answers.
  explicit PartEvaluation(PipelineTexts& texts) : texts_(texts) {}
  ~PartEvaluation() { stop(); }

  // Nothing runs, and the newest round is not measured yet.
  bool is_due() const { return state_ == nullptr && texts_.round() != measured_; }
  void begin(Text text);  // while nothing runs, of one piece or more
  // Once after begin(). Unavailable: a part does not answer. Cancelled: rounds are too short for it.
  std::optional<Expected<train::Evaluation>> take();

 private:
  struct State;
  void stop();

  PipelineTexts& texts_;
  std::shared_ptr<State> state_;
  std::optional<std::uint64_t> measured_;  // round
};

}  // namespace neuroshard::engine
