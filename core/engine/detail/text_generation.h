// Generates texts with the model that trains, between its steps. A text has turns of two seconds, with one
// training step between two turns: the first token comes after at most one step, a long text does not stop
// the training, and a short one (hundreds of tokens) delays it by about a second. Each turn reads the text's
// window again, because the step has changed the weights. Without training, the newest checkpoint's weights
// are read and kept for a minute.
//
// Threads: generate() from any thread; the rest on the core executor. The compute thread generates the text
// and runs on_text.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/session_host.h"
#include "core/engine/detail/training_controller.h"
#include "core/engine/generator.h"
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
    Text(node::CommandId id, GenerateOptions options)
        : command(id), cancel(options.cancel), writer(std::move(options)) {}
    const node::CommandId command;
    const CancelToken cancel;
    TextWriter writer;             // compute thread, or between its turns
    std::uint64_t step = 0;        // of the model in the last turn
    std::function<void()> finish;  // shows the bytes of an incomplete character
  };
  struct Turn {
    Expected<bool> complete;
    bool has_text_model = false;
  };

  bool is_next() const;
  Turn write(Text& text, const CancelToken& interrupt, Duration length);                  // compute thread
  Expected<bool> write_until(Text& text, const CancelToken& interrupt, Duration length);  // compute thread
  void on_turn(const std::shared_ptr<Text>& text, const Turn& turn);
  void finish(const Text& text, const Expected<bool>& complete);

  const EngineContext& context_;
  SessionHost& host_;
  const TrainingController& training_;
  std::deque<std::shared_ptr<Text>> texts_;     // in turn
  bool had_turn_ = false;                       // a training step is next
  const data::Tokenizer* tokenizer_ = nullptr;  // compute thread: of the turn that runs
  // The model without training. The training's model may have taken its memory since.
  bool has_model_ = false;
  bool drop_model_ = false;  // no text has used it for a minute
  std::unique_ptr<TimerHandle> model_timer_;
};

}  // namespace neuroshard::engine::detail
