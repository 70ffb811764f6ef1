// The models of this process: the one that trains, and one with weights only that generates text while no
// model trains. Opens, steps and closes them, and attaches the rounds to the one that trains.
//
// Threads: the compute thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/data/tokenizer.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/round_trainer.h"
#include "core/engine/router_load.h"
#include "core/engine/training_session.h"
#include "core/node/queries.h"
#include "core/node/snapshot.h"

namespace neuroshard::engine::detail {

node::EvaluationView evaluation_view(std::uint64_t step, const Validation& validation);

class SessionHost {
 public:
  explicit SessionHost(const EngineContext& context);
  ~SessionHost();

  // The session's parts after open().
  struct Ready {
    std::optional<Error> away;  // the source of the text did not answer: there is no model, and nothing below
    SessionInfo info;
    WallTime restored_at{};                          // when the checkpoint was saved; 0 = a new model
    std::optional<node::EvaluationView> evaluation;  // if requested
    std::optional<node::DataView> data;
    std::shared_ptr<const data::Tokenizer> tokenizer;
  };
  // Makes the model that trains. Closes any model that is open first, for its memory; on an error there is none.
  // evaluate_at: evaluates a model that has this many steps already; 0 = never.
  Expected<Ready> open(const PrepareOptions& options, std::uint64_t evaluate_at);

  struct Step {
    StepReport report;
    std::vector<node::ExpertLoad> experts;
    std::optional<data::ShardId> shard;
  };
  struct Turn {
    std::optional<Step> step;                // none: the rounds rest
    std::optional<WantedModel> other_model;  // that has to be opened instead
    std::optional<Error> away;  // the source of the text did not answer: the same step again later
  };
  // One training step on `threads` threads (0 = from the settings). The step that reaches `target` is evaluated,
  // whatever the interval of evaluations. has_text: false, of a node in rounds only, does for a moment what other members ask for.
  // It gives finished work, takes anchors up, and computes the text of others where the model has parts.
  Expected<Turn> step(std::uint32_t threads, std::uint64_t target, bool has_text, const CancelToken& cancel);

  Expected<std::string> save();
  // Saves the final checkpoint, if a model trains; the model stays open.
  Expected<void> finish();
  void close();
  // The newest checkpoint on the disk; nothing when there is none or the disk can't be read.
  std::optional<checkpoint::Entry> newest_checkpoint() const;

  // The model that generates text: the one that trains, else the newest checkpoint's, which this reads now.
  // checkpoint: read this one instead; only while no model trains, as memory is planned for one model.
  // Errors: those of TrainingSession::prepare(); Cancelled by the token; Unavailable: a model trains.
  Expected<TrainingSession*> open_for_text(const CancelToken& interrupt, const std::string& checkpoint);
  bool has_model() const { return training_ || text_; }
  bool has_text_model() const { return text_ != nullptr; }
  void close_text_model() { text_.reset(); }
  // Another number after each change of the weights of the model that generates text.
  std::uint64_t weights() const;
  // Steps behind those weights.
  std::uint64_t text_step() const;
  // Caches of texts stay until the weights change, also while the model trains: other weights generate texts.
  bool keeps_windows() const { return text_ != nullptr || context_.options.pipeline != nullptr; }

 private:
  Expected<SessionInfo> open_training(const PrepareOptions& options);
  WallTime saved_at(const std::string& checkpoint) const;

  const EngineContext& context_;
  std::unique_ptr<TrainingSession> training_;
  std::unique_ptr<TrainingSession> text_;
  std::string text_checkpoint_;  // that text_ was opened with; empty: the current one
  RouterLoad router_;
  std::uint64_t weights_ = 1;
};

}  // namespace neuroshard::engine::detail
