// Text from a trained model: encode the prompt, extend the key/value cache token by token, sample, decode.
// The same model, prompt, options and build give the same text.
//
// The model sees a window of at most the trained sequence length T: positions beyond it mean nothing to it.
// When the window is full, its last 3T/4 tokens are read again as a new window, so an answer may be longer
// than T; of a longer prompt the same part is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/compute/sampling.h"
#include "core/engine/training_session.h"

namespace neuroshard::engine {

inline constexpr std::uint64_t max_prompt_bytes = 1u << 20;
inline constexpr std::uint32_t max_generation_tokens = 1u << 20;  // of one answer

struct GenerateOptions {
  std::string prompt;  // empty: the beginning of a new text
  std::uint32_t max_tokens = 128;
  std::uint64_t seed = 0;
  compute::SamplingOptions sampling{.temperature = 0.8f, .top_k = 40, .top_p = 1.0f};
  CancelToken cancel;
  // Pieces of the answer as they come, cut between characters.
  std::function<void(std::string_view)> on_text;
};

struct Generation {
  std::string text;  // without the prompt; any bytes, UTF-8 where the model writes it
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens = 0;
  bool ended = false;    // the model ended the text by itself
  bool stopped = false;  // the cancel token did
  double prompt_seconds = 0;
  double seconds = 0;  // of the answer
};

// A text that is written in turns, between which the model may train on or be another one: what it has
// written is kept, and each turn reads the window again.  Threads: one at a time.
class TextWriter {
 public:
  explicit TextWriter(GenerateOptions options) : options_(std::move(options)), rng_(options_.seed) {}

  // Writes until the text is complete (true), or `turn_over` says so, which is asked after each token
  // (false). At least one token is written in each turn. On the session's thread, after prepare() in either
  // mode. Errors: InvalidArgument (a prompt or number out of bounds, sampling options), Exhausted (memory),
  // Cancelled (before the first token), what the stage reports.
  Expected<bool> write(TrainingSession& session, const Clock& clock, const std::function<bool()>& turn_over);

  const Generation& result() const { return result_; }

 private:
  Expected<void> begin(const data::Tokenizer& tokenizer);
  void show(bool last);

  GenerateOptions options_;
  Generation result_;
  Rng rng_;
  std::vector<std::int32_t> tokens_;  // prompt and text
  bool begun_ = false;
  std::size_t shown_ = 0;
};

// The whole text at once. Errors as above.
Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options);

}  // namespace neuroshard::engine
