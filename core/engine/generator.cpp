#include "core/engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/data/encoder.h"
#include "core/engine/text_batch.h"

namespace neuroshard::engine {
namespace {

// The longest beginning of text that ends between two characters. A sequence that can't become UTF-8 counts
// as whole.
std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return wanted > back ? text.size() - back : text.size();
  }
  return text.size();
}

// Never samples rows of the head without a token, nor control tokens except the end of text.
void forbid_control_tokens(std::vector<float>& logits, std::uint32_t vocabulary) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  for (data::TokenId id = 0; id < data::first_byte_token; ++id) {
    if (id != data::eos_token) logits[id] = never;
  }
  std::fill(logits.begin() + std::min<std::ptrdiff_t>(vocabulary, static_cast<std::ptrdiff_t>(logits.size())),
            logits.end(), never);
}

Expected<std::vector<data::TokenId>> encode_prompt(const data::Tokenizer& tokenizer,
                                                   const GenerateOptions& options) {
  if (!options.prompt_tokens.empty()) {
    for (const std::uint32_t token : options.prompt_tokens) {
      if (token < tokenizer.vocab_size()) continue;
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the prompt has the token {}; this model's tokens are 0 to {}", token,
                                    tokenizer.vocab_size() - 1));
    }
    return std::vector<data::TokenId>(options.prompt_tokens.begin(), options.prompt_tokens.end());
  }
  if (options.prompt.size() > max_prompt_bytes) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("the prompt has {} bytes; at most {} are read",
                                                              options.prompt.size(), max_prompt_bytes));
  }
  // The tokenizer belongs to the session, which outlives this call.
  data::Encoder encoder(std::shared_ptr<const data::Tokenizer>(&tokenizer, [](const data::Tokenizer*) {}));
  std::vector<data::TokenId> ids;
  encoder.encode(as_bytes(options.prompt), &ids);
  // Texts follow one another in training with the end token between them, so it also says "a new text
  // begins".
  if (ids.empty()) ids.push_back(data::eos_token);
  return ids;
}

}  // namespace

Expected<void> check(const GenerateOptions& options) {
  NS_RETURN_IF_ERROR(compute::validate(options.sampling));
  const auto refuse = [](std::string text) {
    return make_error(ErrorCode::InvalidArgument, std::move(text));
  };
  if (options.embedding) {
    if (options.max_tokens != 0 || options.echo || options.logprobs)
      return refuse("an embedding comes without an answer: ask for 0 tokens, without echo and logprobs");
    if (options.prompt.empty() && options.prompt_tokens.empty())
      return refuse("the text is empty; an embedding needs at least one token");
    return {};
  }
  if (options.max_tokens > max_generation_tokens || (options.max_tokens == 0 && !options.echo)) {
    return refuse(fmt::format("{} tokens are asked for; ask for at least one, and for at most {}",
                              options.max_tokens, max_generation_tokens));
  }
  if (options.stop.size() > max_stop_sequences)
    return refuse(fmt::format("{} stop sequences are given; at most {} are allowed", options.stop.size(),
                              max_stop_sequences));
  for (const std::string& stop : options.stop) {
    if (stop.empty() || stop.size() > max_stop_bytes)
      return refuse(
          fmt::format("a stop sequence has {} bytes; it must have 1 to {}", stop.size(), max_stop_bytes));
  }
  if (options.logprobs.value_or(0) > compute::max_top_logprobs)
    return refuse(fmt::format("log-probabilities of {} tokens are asked for; at most {} are given",
                              *options.logprobs, compute::max_top_logprobs));
  return {};
}

Expected<void> TextWriter::begin(const data::Tokenizer& tokenizer, std::uint32_t window) {
  NS_RETURN_IF_ERROR(check(options_));
  NS_ASSIGN_OR_RETURN(const std::vector<data::TokenId> prompt, encode_prompt(tokenizer, options_));
  if ((options_.whole_prompt || options_.embedding || scores_prompt()) && prompt.size() > window) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("the prompt has {} tokens; the context of this model has {}: shorten the prompt",
                    prompt.size(), window));
  }
  result_.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  // Ids are far below 2^31: the stage's signed tokens have the same bits.
  tokens_.assign(prompt.begin(), prompt.end());
  seen_.assign(tokenizer.vocab_size(), false);
  for (const std::int32_t token : tokens_) note(token);
  begun_ = true;
  if (scores_prompt()) {
    echo_token(tokenizer, {tokens_.front(), std::nullopt});
    scored_ = 1;
  } else if (options_.echo && options_.on_piece) {
    std::string text;
    for (const data::TokenId token : prompt) text += as_text(tokenizer.token_bytes(token));
    options_.on_piece({text, {}, true});
  }
  return {};
}

void TextWriter::note(std::int32_t token) {
  const auto at = static_cast<std::size_t>(token);
  if (at < seen_.size()) seen_[at] = true;
}

void TextWriter::echo_token(const data::Tokenizer& tokenizer, WrittenToken token) {
  if (!options_.on_piece) return;
  const auto text = as_text(tokenizer.token_bytes(static_cast<data::TokenId>(token.token)));
  std::vector<WrittenToken> tokens;
  tokens.push_back(std::move(token));
  options_.on_piece({text, std::move(tokens), true});
}

void TextWriter::keep_token(std::int32_t token, Span<const float> logits, std::size_t bytes,
                            std::uint32_t vocabulary) {
  Waiting waiting;
  waiting.token = {token, compute::log_probabilities(logits, token, *options_.logprobs, vocabulary)};
  waiting.begin = result_.text.size();
  waiting.end = waiting.begin + bytes;
  waiting_.push_back(std::move(waiting));
}

// True if a stop sequence is complete; the text then ends before the first one.
bool TextWriter::add_text(std::string_view bytes) {
  const std::size_t before = result_.text.size();
  result_.text += bytes;
  std::size_t first = std::string::npos;
  for (const std::string& stop : options_.stop) {
    const std::size_t from = before >= stop.size() ? before - stop.size() + 1 : 0;
    first = std::min(first, result_.text.find(stop, from));
  }
  if (first == std::string::npos) return false;
  result_.text.resize(first);
  result_.at_stop = true;
  // A token that the sequence cuts is shown with the text before it.
  while (!waiting_.empty() && waiting_.back().begin >= first) waiting_.pop_back();
  if (!waiting_.empty()) waiting_.back().end = std::min(waiting_.back().end, first);
  return true;
}

// Bytes at the end of the text that may begin a stop sequence.
std::size_t TextWriter::held_back() const {
  std::size_t most = 0;
  for (const std::string& stop : options_.stop) {
    for (std::size_t length = std::min(stop.size() - 1, result_.text.size()); length > most; --length) {
      if (result_.text.compare(result_.text.size() - length, length, stop, 0, length) == 0) most = length;
    }
  }
  return most;
}

void TextWriter::show(bool last) {
  if (!options_.on_piece) return;
  std::size_t until = result_.text.size();
  if (!last) until = std::min(whole_characters(result_.text), result_.text.size() - held_back());
  WrittenPiece piece;
  if (until > shown_) piece.text = std::string_view(result_.text).substr(shown_, until - shown_);
  shown_ = std::max(shown_, until);
  while (!waiting_.empty() && waiting_.front().end <= shown_) {
    piece.tokens.push_back(std::move(waiting_.front().token));
    waiting_.pop_front();
  }
  if (!piece.text.empty() || !piece.tokens.empty()) options_.on_piece(piece);
}

compute::TokenScores TextWriter::PromptScores::view() {
  logprobs.resize(targets.size());
  top_tokens.resize(targets.size() * top);
  top_logprobs.resize(targets.size() * top);
  return {targets.data(), logprobs.data(), top, vocabulary, top_tokens.data(), top_logprobs.data()};
}

std::optional<pipeline::TextScores> TextWriter::asked_scores(std::uint32_t vocabulary) const {
  if (!scores_prompt() || scored_ >= result_.prompt_tokens) return std::nullopt;
  return pipeline::TextScores{*options_.logprobs, vocabulary};
}

TextWriter::PromptScores TextWriter::wanted_scores(std::size_t first, std::size_t count,
                                                   std::uint32_t vocabulary) const {
  PromptScores scores;
  // A scored prompt fits into the window, which therefore begins with it until an answer has filled it.
  if (!scores_prompt() || scored_ >= result_.prompt_tokens) return scores;
  scores.first = first + 1;
  scores.top = *options_.logprobs;
  scores.vocabulary = vocabulary;
  bool any = false;
  for (std::size_t at = scores.first; at < scores.first + count; ++at) {
    const bool wanted = at >= scored_ && at < result_.prompt_tokens;
    any = any || wanted;
    scores.targets.push_back(wanted ? tokens_[at] : -1);
  }
  if (!any) scores.targets.clear();
  return scores;
}

void TextWriter::echo_scores(const PromptScores& scores, const data::Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < scores.targets.size(); ++i) {
    if (scores.targets[i] < 0) continue;
    compute::Logprobs logprobs{scores.logprobs[i], {}};
    for (std::size_t j = i * scores.top; j < (i + 1) * scores.top && scores.top_tokens[j] >= 0; ++j)
      logprobs.top.push_back({scores.top_tokens[j], scores.top_logprobs[j]});
    echo_token(tokenizer, {scores.targets[i], std::move(logprobs)});
    scored_ = scores.first + i + 1;
  }
}

Expected<bool> TextWriter::next_token(std::vector<float>& logits, const data::Tokenizer& tokenizer) {
  std::vector<float> own;  // as the model gave them
  if (options_.logprobs) own = logits;
  compute::adjust_logits(Span<float>(logits), options_.sampling, seen_);
  forbid_control_tokens(logits, tokenizer.vocab_size());
  NS_ASSIGN_OR_RETURN(const std::int32_t token,
                      compute::sample_token({logits.data(), logits.size()}, options_.sampling, rng_));
  ++result_.tokens;
  const auto bytes = as_text(tokenizer.token_bytes(static_cast<data::TokenId>(token)));
  if (options_.logprobs) keep_token(token, Span<const float>(own), bytes.size(), tokenizer.vocab_size());
  if (token == static_cast<std::int32_t>(data::eos_token)) {
    result_.ended = true;
    return true;
  }
  tokens_.push_back(token);
  note(token);
  if (add_text(bytes)) return true;
  show(/*last=*/false);
  return result_.tokens >= options_.max_tokens;
}

void TextWriter::add_hidden(std::size_t first, std::size_t width, Span<const float> hidden) {
  if (first == 0) hidden_sum_.assign(width, 0);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden_sum_[i % width] += static_cast<double>(hidden[i]);
}

// The direction of the sum is that of the mean.
void TextWriter::finish_embedding() {
  double squares = 0;
  for (const double value : hidden_sum_) squares += value * value;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (const double value : hidden_sum_) result_.embedding.push_back(static_cast<float>(value * scale));
}

void TextWriter::end(bool stopped) {
  result_.stopped = stopped;
  if (options_.embedding && !stopped) finish_embedding();
  show(/*last=*/true);
}

void TextWriter::resume(MonotonicTime now) {
  if (!since_) since_ = now;
}

void TextWriter::prompt_is_read(MonotonicTime now) {
  if (prompt_read_) return;
  pause(now);
  prompt_read_ = true;
  since_ = now;
}

void TextWriter::pause(MonotonicTime now) {
  if (!since_) return;
  (prompt_read_ ? result_.seconds : result_.prompt_seconds) += to_seconds(now - *since_);
  since_.reset();
}

Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options) {
  const auto text = std::make_shared<TextWriter>(options);
  Expected<void> outcome;
  bool given = false;
  TextBatch batch(clock);
  TextBatch::Hooks hooks;
  hooks.arrivals = [&] {
    std::vector<std::shared_ptr<TextWriter>> texts;
    if (!std::exchange(given, true)) texts.push_back(text);
    return texts;
  };
  hooks.on_done = [&](const std::shared_ptr<TextWriter>&, const Expected<void>& result) { outcome = result; };
  batch.write(session, 1, hooks);
  NS_RETURN_IF_ERROR(outcome);
  return text->result();
}

}  // namespace neuroshard::engine
