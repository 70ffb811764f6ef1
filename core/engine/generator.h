// Text from a trained model: encode the prompt, extend the key/value cache token by token, sample, decode.
// The same model, prompt, options and build give the same text.
//
// The model reads a window of at most the trained sequence length T: it has not learned later positions.
// When the window is full, the generator reads its last 3T/4 tokens again as a new window, so an answer may
// be longer than T; it reads the same part of a longer prompt.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
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
inline constexpr std::size_t max_stop_sequences = 16;
inline constexpr std::size_t max_stop_bytes = 256;  // of one

// A token of the answer, or of the prompt.
struct WrittenToken {
  std::int32_t token = 0;
  std::optional<compute::Logprobs> logprobs;  // nothing: the first token of a prompt, which nothing predicts
};
struct WrittenPiece {
  std::string_view text;
  std::vector<WrittenToken> tokens;  // with logprobs: those whose bytes ended since the piece before
  bool of_prompt = false;
};

struct GenerateOptions {
  std::string prompt;                          // empty: the beginning of a new text
  std::vector<std::uint32_t> prompt_tokens{};  // instead of `prompt`, unless empty
  std::uint32_t max_tokens = 128;              // 0 only with echo
  std::uint64_t seed = 0;
  compute::SamplingOptions sampling{.temperature = 0.8f, .top_k = 40, .top_p = 1.0f};
  // The text ends before the first of them, which may lie across tokens; none is empty.
  std::vector<std::string> stop{};
  // Set: pieces have tokens, with so many of the likeliest beside each, at most compute::max_top_logprobs.
  std::optional<std::uint32_t> logprobs{};
  bool echo = false;          // the prompt comes first, in pieces of its own
  bool whole_prompt = false;  // refuse a prompt longer than the window; implied by echo with logprobs
  CancelToken cancel{};
  // Gets pieces of the answer as they are generated, cut between characters.
  std::function<void(const WrittenPiece&)> on_piece{};
};

struct Generation {
  std::string text;  // without the prompt; any bytes, UTF-8 where the model generates it
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens = 0;
  bool ended = false;    // the model ended the text by itself
  bool at_stop = false;  // a stop sequence ended the text
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
  // (false). Each turn generates at least one token, or scores one of the prompt. On the session's thread, after
  // prepare() in either mode. Errors: InvalidArgument (a prompt or number out of bounds, options), Exhausted
  // (memory), Denied (a whole_prompt that is too long), Cancelled (before the first token), those of the stage.
  Expected<bool> write(TrainingSession& session, const Clock& clock, const std::function<bool()>& turn_over);

  const Generation& result() const { return result_; }

 private:
  // A token whose text has not been shown yet.
  struct Waiting {
    WrittenToken token;
    std::size_t begin = 0, end = 0;  // of its bytes in the text
  };

  class Window;

  Expected<void> begin(const data::Tokenizer& tokenizer, std::uint32_t window);
  // Both as write(), with the window on the tokens before.
  Expected<bool> score(Window& window, const data::Tokenizer& tokenizer,
                       const std::function<bool()>& turn_over);
  Expected<bool> next_token(Window& window, const data::Tokenizer& tokenizer);
  bool scores_prompt() const { return options_.echo && options_.logprobs.has_value(); }
  void note(std::int32_t token);
  void echo_token(const data::Tokenizer& tokenizer, WrittenToken token);
  void keep_token(std::int32_t token, Span<const float> logits, std::size_t bytes, std::uint32_t vocabulary);
  bool add_text(std::string_view bytes);
  std::size_t held_back() const;
  void show(bool last);

  GenerateOptions options_;
  Generation result_;
  Rng rng_;
  std::vector<std::int32_t> tokens_;  // prompt and text
  std::vector<bool> seen_;            // tokens of the prompt and the text, for the penalty
  std::deque<Waiting> waiting_;
  bool begun_ = false;
  std::size_t scored_ = 0;  // tokens of the prompt that were echoed with log-probabilities
  std::size_t shown_ = 0;
};

// InvalidArgument: an option is out of bounds. The prompt is not looked at.
Expected<void> check(const GenerateOptions& options);

// The whole text in one turn. Errors as above.
Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options);

}  // namespace neuroshard::engine
