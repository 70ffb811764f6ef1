// Text from a trained model: encode the prompt, extend the key/value cache token by token, sample, decode.
// The same model, prompt, options and build give the same text.
//
// The model reads a window of at most the trained sequence length T: it has not learned later positions.
// When the window is full, the generator reads its last 3T/4 tokens again as a new window, so an answer may
// be longer than T; it reads the same part of a longer prompt.
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
  // Gets pieces of the answer as they are generated, cut between characters.
  std::function<void(std::string_view)> on_text;
};

struct Generation {
  std::string text;  // without the prompt; any bytes, UTF-8 where the model generates it
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens = 0;
  bool ended = false;    // the model ended the text by itself
  bool stopped = false;  // the cancel token ended the text
  double prompt_seconds = 0;
  double seconds = 0;  // time for the answer
};

// A text that is generated in turns, between which the model may train or be replaced: the tokens so far are
// kept, and each turn reads the window again.  Threads: one at a time.
class TextWriter {
 public:
  explicit TextWriter(GenerateOptions options) : options_(std::move(options)), rng_(options_.seed) {}

  // Generates until the text is complete (true), or until `turn_over`, called after each token, returns true
  // (false). Each turn generates at least one token. On the session's thread, after prepare() in either
  // mode. Errors: InvalidArgument (a prompt or number out of bounds, sampling options), Exhausted (memory),
  // Cancelled (before the first token), those of the stage.
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

// The whole text in one turn. Errors as above.
Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options);

}  // namespace neuroshard::engine
