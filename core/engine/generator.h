// One text from a trained model: encodes the prompt, samples tokens from the logits that a TextBatch (text_batch.h)
// gets from the model, and decodes them. The same model, prompt, options and build give the same text.
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
#include "core/pipeline/text_scores.h"

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
  bool echo = false;  // the prompt comes first, in pieces of its own
  bool whole_prompt =
      false;  // refuse a prompt longer than the window; implied by echo with logprobs, and embedding
  bool embedding = false;  // of the prompt, and no answer: max_tokens is 0
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
  double seconds = 0;              // time for the answer
  std::vector<float> embedding{};  // the mean of the prompt's last hidden states, scaled to length 1
};

// The progress of one text. A TextBatch drives it, in turns between which the model may train or be replaced: the
// tokens so far are kept.  Threads: one at a time.
class TextWriter {
 public:
  explicit TextWriter(GenerateOptions options) : options_(std::move(options)), rng_(options_.seed) {}

  const Generation& result() const { return result_; }
  bool cancelled() const { return options_.cancel.cancelled(); }

  // Encodes the prompt and echoes it. window: the model's. Once, before the rest. Errors: InvalidArgument, Denied (a
  // whole_prompt that is too long).
  Expected<void> begin(const data::Tokenizer& tokenizer, std::uint32_t window);
  bool begun() const { return begun_; }
  // Prompt and answer, without the end of the text.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

  // Scores of the prompt's tokens, which the model gives while it reads them.
  struct PromptScores {
    std::size_t first = 0;              // place in the prompt of the first target
    std::vector<std::int32_t> targets;  // empty: nothing to score
    std::vector<double> logprobs;
    std::uint32_t top = 0;
    std::uint32_t vocabulary = 0;
    std::vector<std::int32_t> top_tokens;
    std::vector<double> top_logprobs;
    compute::TokenScores view();
  };
  // That the model is asked for while it reads the prompt; nothing: none.
  std::optional<pipeline::TextScores> asked_scores(std::uint32_t vocabulary) const;
  // Room for the scores that the positions [first, first + count) of the prompt give and that are not echoed yet.
  PromptScores wanted_scores(std::size_t first, std::size_t count, std::uint32_t vocabulary) const;
  void echo_scores(const PromptScores& scores, const data::Tokenizer& tokenizer);

  // The mean of the hidden states of all tokens is asked for.
  bool wants_hidden() const { return options_.embedding; }
  // hidden: [n,width], after the final norm, of the tokens from `first`. 0 begins anew.
  void add_hidden(std::size_t first, std::size_t width, Span<const float> hidden);
  // False: the prompt was all that is asked for.
  bool wants_tokens() const { return options_.max_tokens > 0; }
  // Samples a token from the logits after tokens(), which it changes, and shows it: true if the text is complete.
  Expected<bool> next_token(std::vector<float>& logits, const data::Tokenizer& tokenizer);
  // The text is complete, or stopped by its cancel token: shows what was held back.
  void end(bool stopped);

  // The times of the result: the text is worked on from resume() to pause(), and its prompt until prompt_is_read().
  void resume(MonotonicTime now);
  void prompt_is_read(MonotonicTime now);
  void pause(MonotonicTime now);

 private:
  // A token whose text has not been shown yet.
  struct Waiting {
    WrittenToken token;
    std::size_t begin = 0, end = 0;  // of its bytes in the text
  };

  void finish_embedding();
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
  std::vector<std::int32_t> tokens_;
  std::vector<bool> seen_;  // tokens of the prompt and the text, for the penalty
  std::deque<Waiting> waiting_;
  bool begun_ = false;
  std::size_t scored_ = 0;          // tokens of the prompt that were echoed with log-probabilities
  std::vector<double> hidden_sum_;  // [width]
  std::size_t shown_ = 0;
  bool prompt_read_ = false;
  std::optional<MonotonicTime> since_;  // of the time that the result does not have yet
};

// InvalidArgument: an option is out of bounds. The prompt is not looked at.
Expected<void> check(const GenerateOptions& options);

// The whole text in one turn. Errors as above.
Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options);

}  // namespace neuroshard::engine
