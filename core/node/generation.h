// The request of Node::generate(), and the pieces of the answer. Plain values, bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::node {

inline constexpr std::size_t max_prompt_bytes = 64u << 10;
inline constexpr std::size_t max_prompt_tokens = 16u << 10;  // of a prompt that is given as tokens
inline constexpr std::uint32_t max_generated_tokens = 4096;
inline constexpr std::size_t max_stop_sequences = 16;
inline constexpr std::size_t max_stop_bytes = 256;  // of one
inline constexpr std::size_t max_biases = 300;
inline constexpr std::uint32_t max_logprobs = 20;

struct TokenBias {
  std::uint32_t token = 0;
  double bias = 0;  // added to the logit; −100 … 100
};

struct GenerateRequest {
  std::string prompt;              // UTF-8, at most max_prompt_bytes
  std::uint32_t max_tokens = 200;  // 1 … max_generated_tokens; 0 with echo: the prompt only
  double temperature = 0.8;        // 0 = greedy
  std::uint32_t top_k = 40;        // 0 = off
  double top_p = 1.0;
  std::uint64_t seed = 0;  // 0 = a new one each time; see fixed_seed()
  double min_p = 0;        // least probability as a fraction of the likeliest token's; 0 = off
  double repetition_penalty = 1;
  std::vector<TokenBias> logit_bias{};  // max_biases at most
  // The text ends before the first of them, wherever tokens begin; max_stop_sequences of 1 … max_stop_bytes.
  std::vector<std::string> stop{};
  // Set: pieces have tokens, each with its log-probability and this many of the likeliest; 0 … max_logprobs.
  // They are the model's own, before temperature, penalty and bias.
  std::optional<std::uint32_t> logprobs{};
  // Name of the checkpoint that answers; empty: the model that trains, or the newest checkpoint. Unavailable while a
  // model trains.
  std::string checkpoint{};
  std::vector<std::uint32_t> prompt_tokens{};  // instead of `prompt`, max_prompt_tokens at most
  bool echo = false;                           // the first pieces are the prompt's
  // Refuse (Denied) a prompt that is longer than the model's context; else its end is read. Implied by echo
  // with logprobs.
  bool whole_prompt = false;
  // The result has the prompt's embedding instead of an answer. max_tokens is 0 and the prompt not empty; neither echo
  // nor logprobs. Implies whole_prompt.
  bool embedding = false;
  // The owner of the text, among those that use this node through one program, such as an HTTP server. Beside training,
  // the first token of a client does not wait for the others' texts. Not sent to a remote node.
  std::string client{};
};

// For GenerateRequest::seed, from the seed that a person gave: 0 too gives the same text each time.
inline std::uint64_t fixed_seed(std::uint64_t given) {
  constexpr std::uint64_t for_zero = 0x9E37'79B9'7F4A'7C15;
  return given == 0 ? for_zero : given;
}

struct LikelyToken {
  std::uint32_t token = 0;
  std::string text;    // bytes; may be part of a UTF-8 character, empty for the end of the text
  double logprob = 0;  // natural logarithm
};
struct GeneratedToken {
  std::uint32_t token = 0;
  std::string text;               // bytes, as above
  std::optional<double> logprob;  // nothing: the first token of a prompt, which nothing predicts
  std::vector<LikelyToken> top;   // the likeliest first
};
// A part of the answer.
struct TextPiece {
  std::string text;                    // valid UTF-8; U+FFFD for other bytes
  std::vector<GeneratedToken> tokens;  // with logprobs: those whose text ended since the piece before
  bool of_prompt = false;              // echoed
};
using TextHandler = std::function<void(TextPiece)>;

}  // namespace neuroshard::node
