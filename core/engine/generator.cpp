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

// The model's context: the newest tokens, their keys and values in the stage's cache, and the logits after
// the last one. Closes the cache in every case.
class Window {
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
  if (options.max_tokens == 0 || options.max_tokens > max_generation_tokens) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} tokens are asked for; ask for at least one, and for at most {}",
                                  options.max_tokens, max_generation_tokens));
  }
  return ids;
}

}  // namespace

Expected<void> TextWriter::begin(const data::Tokenizer& tokenizer) {
  NS_RETURN_IF_ERROR(compute::validate(options_.sampling));
  NS_ASSIGN_OR_RETURN(const std::vector<data::TokenId> prompt, encode_prompt(tokenizer, options_));
  result_.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  // Ids are far below 2^31: the stage's signed tokens have the same bits.
  tokens_.assign(prompt.begin(), prompt.end());
  begun_ = true;
  return {};
}

void TextWriter::show(bool last) {
  if (!options_.on_text) return;
  const std::size_t until = last ? result_.text.size() : whole_characters(result_.text);
  if (until > shown_) options_.on_text(std::string_view(result_.text).substr(shown_, until - shown_));
  shown_ = std::max(shown_, until);
}

Expected<bool> TextWriter::write(TrainingSession& session, const Clock& clock,
                                 const std::function<bool()>& turn_over) {
  const data::Tokenizer& tokenizer = session.tokenizer();
  if (!begun_) NS_RETURN_IF_ERROR(begin(tokenizer));
  Window window(session.stage(), session.info().shape);
  const MonotonicTime started = clock.monotonic_now();
  // Cancellation discards only a text without tokens; generated tokens stay.
  NS_RETURN_IF_ERROR(
      window.begin({tokens_.data(), tokens_.size()}, result_.tokens == 0 ? options_.cancel : CancelToken()));
  const MonotonicTime prompted = clock.monotonic_now();
  if (result_.tokens == 0) result_.prompt_seconds = to_seconds(prompted - started);

  bool complete = false;
  while (!complete) {
    if (options_.cancel.cancelled()) {
      result_.stopped = true;
      break;
    }
    std::vector<float>& logits = window.logits();
    forbid_control_tokens(logits, tokenizer.vocab_size());
    NS_ASSIGN_OR_RETURN(const std::int32_t token,
                        compute::sample_token({logits.data(), logits.size()}, options_.sampling, rng_));
    ++result_.tokens;
    if (token == static_cast<std::int32_t>(data::eos_token)) {
      result_.ended = true;
      break;
    }
    tokens_.push_back(token);
    result_.text += as_text(tokenizer.token_bytes(static_cast<data::TokenId>(token)));
    show(/*last=*/false);
    complete = result_.tokens >= options_.max_tokens;
    if (complete) break;
    if (turn_over && turn_over()) {
      result_.seconds += to_seconds(clock.monotonic_now() - prompted);
      return false;
    }
    NS_RETURN_IF_ERROR(window.append(token, CancelToken()));
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
