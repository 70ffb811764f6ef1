#include "core/engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/compute/module.h"
#include "core/data/encoder.h"

namespace neuroshard::engine {
namespace {

constexpr std::uint64_t cache_session = 1;   // of the stage; one generation at a time
constexpr std::uint32_t prompt_chunk = 256;  // tokens between two checks of the cancel token

}  // namespace

// The model's context: the newest tokens, their keys and values in the stage's cache, and the logits after
// the last one. Closes the cache in every case.
class TextWriter::Window {
 public:
  Window(compute::Stage& stage, const compute::ModelShape& shape)
      : stage_(stage), capacity_(shape.sequence), logits_(shape.vocab) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { close(); }

  // Starts with the prompt, or the part of it that fits.
  Expected<void> begin(Span<const std::int32_t> prompt, const CancelToken& cancel) {
    if (prompt.size() > capacity_) prompt = prompt.last(kept());
    tokens_.assign(prompt.begin(), prompt.end());
    return read_again(cancel);
  }
  Expected<void> append(std::int32_t token, const CancelToken& cancel) {
    const bool full = tokens_.size() == capacity_;
    if (full) tokens_.erase(tokens_.begin(), tokens_.end() - static_cast<std::ptrdiff_t>(kept() - 1));
    tokens_.push_back(token);
    return full ? read_again(cancel) : extend({&token, 1});
  }
  std::vector<float>& logits() { return logits_; }

 private:
  // At least the token just added.
  std::size_t kept() const { return std::max<std::size_t>(1, capacity_ - capacity_ / 4); }

  void close() {
    if (open_) stage_.close_session(cache_session);
    open_ = false;
  }
  Expected<void> read_again(const CancelToken& cancel) {
    close();
    const compute::Status status = stage_.open_session(cache_session, capacity_);
    if (!status.ok()) return compute::to_error(status);
    open_ = true;
    const Span<const std::int32_t> all(tokens_.data(), tokens_.size());
    for (std::size_t at = 0; at < all.size(); at += prompt_chunk) {
      if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the first token");
      NS_RETURN_IF_ERROR(extend(all.subspan(at, std::min<std::size_t>(prompt_chunk, all.size() - at))));
    }
    return {};
  }
  Expected<void> extend(Span<const std::int32_t> tokens) {
    const compute::Status status =
        stage_.extend_session(cache_session, static_cast<std::uint32_t>(tokens.size()), tokens.data(),
                              nullptr, nullptr, logits_.data());
    if (!status.ok()) return compute::to_error(status);
    return {};
  }

  compute::Stage& stage_;
  const std::uint32_t capacity_;
  std::vector<std::int32_t> tokens_;  // what the cache holds
  std::vector<float> logits_;
  bool open_ = false;
};

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
  if ((options_.whole_prompt || scores_prompt()) && prompt.size() > window) {
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

Expected<bool> TextWriter::score(Window& window, const data::Tokenizer& tokenizer,
                                 const std::function<bool()>& turn_over) {
  while (scored_ < tokens_.size()) {
    if (options_.cancel.cancelled())
      return make_error(ErrorCode::Cancelled, "stopped before the first token");
    const std::int32_t token = tokens_[scored_++];
    const std::vector<float>& logits = window.logits();
    echo_token(tokenizer, {token, compute::log_probabilities({logits.data(), logits.size()}, token,
                                                             *options_.logprobs, tokenizer.vocab_size())});
    NS_RETURN_IF_ERROR(window.append(token, CancelToken()));
    if (scored_ < tokens_.size() && turn_over && turn_over()) return false;
  }
  return true;
}

// Samples and shows one token: true if the text is complete.
Expected<bool> TextWriter::next_token(Window& window, const data::Tokenizer& tokenizer) {
  std::vector<float>& logits = window.logits();
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

Expected<bool> TextWriter::write(TrainingSession& session, const Clock& clock,
                                 const std::function<bool()>& turn_over) {
  const data::Tokenizer& tokenizer = session.tokenizer();
  if (!begun_) NS_RETURN_IF_ERROR(begin(tokenizer, session.info().shape.sequence));
  Window window(session.stage(), session.info().shape);
  const MonotonicTime started = clock.monotonic_now();
  const bool is_scored = !scores_prompt() || scored_ == tokens_.size() || result_.tokens > 0;
  // Cancellation discards only a text without tokens; generated tokens stay.
  NS_RETURN_IF_ERROR(window.begin({tokens_.data(), is_scored ? tokens_.size() : scored_},
                                  result_.tokens == 0 ? options_.cancel : CancelToken()));
  if (!is_scored) {
    NS_ASSIGN_OR_RETURN(const bool scored, score(window, tokenizer, turn_over));
    if (!scored) {
      result_.prompt_seconds += to_seconds(clock.monotonic_now() - started);
      return false;
    }
  }
  const MonotonicTime prompted = clock.monotonic_now();
  if (result_.tokens == 0) result_.prompt_seconds += to_seconds(prompted - started);

  bool complete = options_.max_tokens == 0;
  while (!complete) {
    if (options_.cancel.cancelled()) {
      result_.stopped = true;
      break;
    }
    NS_ASSIGN_OR_RETURN(complete, next_token(window, tokenizer));
    if (complete) break;
    if (turn_over && turn_over()) {
      result_.seconds += to_seconds(clock.monotonic_now() - prompted);
      return false;
    }
    NS_RETURN_IF_ERROR(window.append(tokens_.back(), CancelToken()));
  }
  show(/*last=*/true);
  result_.seconds += to_seconds(clock.monotonic_now() - prompted);
  return true;
}

Expected<Generation> generate(TrainingSession& session, const Clock& clock, const GenerateOptions& options) {
  TextWriter writer(options);
  NS_ASSIGN_OR_RETURN([[maybe_unused]] const bool complete, writer.write(session, clock, {}));
  return writer.result();
}

}  // namespace neuroshard::engine
