// Generates texts, all of them at once (text_batch.h), with the model that trains, between its steps. The setting
// generation_share says which share of the time the texts have while the model trains (work_share.h): the first token
// comes after at most one step, and a long text does not stop the training. Each turn between steps reads the texts'
// windows again, because a step changes the weights. Without training, the newest checkpoint's weights are read and kept
// for a minute, and so are the windows between turns.
//
// Threads: generate() from any thread; the rest on the core executor. The compute thread generates the texts
// and runs on_text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/session_host.h"
#include "core/engine/detail/training_controller.h"
#include "core/engine/text_batch.h"
#include "core/engine/work_share.h"
#include "core/node/node.h"

namespace neuroshard::engine::detail {

class TextGeneration {
 public:
  TextGeneration(const EngineContext& context, SessionHost& host, const TrainingController& training);

  Expected<node::CommandId> generate(const node::GenerateRequest& request, node::TextHandler on_text);

  // Sources of jobs: the next turn of a text, and closing a model that no text has used for a minute.
  bool start_next_turn();
  bool drop_model_if_due();

  // Drops the timer of the model when the engine ends.
  void end() { model_timer_.reset(); }

 private:
  // A requested text.
  struct Text {
    Text(node::CommandId id, std::string its_client, std::string its_checkpoint, GenerateOptions options)
        : command(id),
          client(std::move(its_client)),
          checkpoint(std::move(its_checkpoint)),
          writer(std::move(options)) {}
    const node::CommandId command;
    const std::string client;
    const std::string checkpoint;  // that answers; empty: the model that trains, or the newest
    TextWriter writer;             // compute thread, or between its turns
    std::uint64_t step = 0;        // of the model in the last turn
    std::function<void()> finish;  // shows the bytes of an incomplete character
  };
  struct Turn {
    double share = 0;  // of the settings
    bool has_text_model = false;
  };

  void count_training();
  std::optional<WorkShare::Turn> next_turn();
  void on_turn(const Turn& turn);
  void keep_model_for_a_while();
  void leave(const std::shared_ptr<Text>& text, const Expected<void>& outcome, std::uint64_t step);
  void finish(const Text& text, const Expected<void>& outcome);
  // Compute thread.
  void write(const CancelToken& interrupt, const WorkShare::Turn& turn);
  void choose_checkpoint();
  std::vector<std::shared_ptr<TextWriter>> take_joining();
  void on_text_done(const TextWriter& writer, const Expected<void>& outcome, std::uint64_t step);

  const EngineContext& context_;
  SessionHost& host_;
  const TrainingController& training_;
  std::vector<std::shared_ptr<Text>> texts_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Text>>
      joining_;  // that the compute thread has not taken yet; guarded by mutex_
  // Compute thread.
  TextBatch batch_;
  std::string checkpoint_;  // of the texts in the batch
  std::map<const TextWriter*, std::shared_ptr<Text>> generating_;
  const data::Tokenizer* tokenizer_ = nullptr;  // of the turn that runs

  WorkShare share_;
  std::optional<MonotonicTime> training_since_;  // the thread is the training's
  // The model without training. The training's model may have taken its memory since.
  bool has_model_ = false;
  bool drop_model_ = false;  // no text has used it for a minute
  std::unique_ptr<TimerHandle> model_timer_;
};

}  // namespace neuroshard::engine::detail
