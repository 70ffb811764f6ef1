// A model as a TextBatch uses it: windows of texts, and logits after their tokens. A whole model answers at once; a model
// of which other nodes hold parts is asked over the network (pipeline_texts.h).
//
// Threads: the compute thread.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/expected.h"
#include "core/compute/module.h"
#include "core/pipeline/text_scores.h"

namespace neuroshard::engine {

class TextModel {
 public:
  virtual ~TextModel() = default;
  // A window of `capacity` positions under a number that no open window has. scores: that its parts may ask for.
  // Exhausted: no memory for another one.
  using Scores = std::optional<pipeline::TextScores>;
  virtual Expected<void> open_session(std::uint64_t session, std::uint32_t capacity,
                                      const Scores& scores) = 0;
  // Appends tokens to windows (compute::Stage::extend_sessions). Cancelled: every window is lost, and has to be opened
  // and read again; the turn may be over.
  virtual Expected<void> extend_sessions(std::uint32_t count, const compute::SessionPart* parts) = 0;
  virtual void close_session(std::uint64_t session) = 0;
};

// A whole model in one stage, which outlives it.
class StageTextModel final : public TextModel {
 public:
  explicit StageTextModel(compute::Stage& stage) : stage_(stage) {}
  Expected<void> open_session(std::uint64_t session, std::uint32_t capacity, const Scores&) override {
    return result(stage_.open_session(session, capacity));
  }
  Expected<void> extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override {
    return result(stage_.extend_sessions(count, parts));
  }
  void close_session(std::uint64_t session) override { stage_.close_session(session); }

 private:
  static Expected<void> result(const compute::Status& status) {
    if (status.ok()) return {};
    return compute::to_error(status);
  }
  compute::Stage& stage_;
};

}  // namespace neuroshard::engine
