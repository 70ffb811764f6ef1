#include "core/engine/detail/text_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/engine/utf8_stream.h"

namespace neuroshard::engine::detail {
namespace {

constexpr Duration turn_beside_training = std::chrono::seconds(2);
constexpr Duration turn_alone = std::chrono::seconds(1);  // then other commands may run
constexpr Duration model_kept = std::chrono::seconds(60);
constexpr std::size_t max_texts = 4;
constexpr std::uint32_t no_token = 0x7fff'ffff;  // of no vocabulary

Expected<GenerateOptions> options_of(const node::GenerateRequest& request) {
  const auto refuse = [](std::string text) {
    return make_error(ErrorCode::InvalidArgument, std::move(text));
  };
  if (request.prompt.size() > node::max_prompt_bytes) {
    return refuse(fmt::format("the prompt has {} bytes; at most {} are read", request.prompt.size(),
                              node::max_prompt_bytes));
  }
  if (request.prompt_tokens.size() > node::max_prompt_tokens) {
    return refuse(fmt::format("the prompt has {} tokens; at most {} are read", request.prompt_tokens.size(),
                              node::max_prompt_tokens));
  }
  if (request.max_tokens > node::max_generated_tokens) {
    return refuse(fmt::format("{} tokens are asked for; ask for 1 to {}", request.max_tokens,
                              node::max_generated_tokens));
  }
  GenerateOptions options;
  options.prompt = request.prompt;
  options.prompt_tokens = request.prompt_tokens;
  options.max_tokens = request.max_tokens;
  options.stop = request.stop;
  options.logprobs = request.logprobs;
  options.echo = request.echo;
  options.whole_prompt = request.whole_prompt;
  options.sampling = {.temperature = static_cast<float>(request.temperature),
                      .top_k = request.top_k,
                      .top_p = static_cast<float>(request.top_p),
                      .min_p = static_cast<float>(request.min_p),
                      .repetition_penalty = static_cast<float>(request.repetition_penalty)};
  for (const node::TokenBias& entry : request.logit_bias) {
    options.sampling.logit_bias.push_back(
        {static_cast<std::int32_t>(std::min<std::uint32_t>(entry.token, no_token)),
         static_cast<float>(entry.bias)});
  }
  NS_RETURN_IF_ERROR(check(options));
  return options;
}

// The pieces of one text on their way to the caller: valid UTF-8, for any bytes that the model generates.
class PieceStream {
 public:
  explicit PieceStream(node::TextHandler on_text) : on_text_(std::move(on_text)) {}

  void add(const WrittenPiece& piece, const data::Tokenizer* tokenizer) {
    if (!piece.of_prompt && of_prompt_) send_rest();  // of the prompt
    of_prompt_ = piece.of_prompt;
    node::TextPiece sent;
    sent.text = utf8_.add(piece.text);
    sent.of_prompt = piece.of_prompt;
    for (const WrittenToken& token : piece.tokens) sent.tokens.push_back(to_node(token, *tokenizer));
    send(std::move(sent));
  }
  // The bytes of an incomplete character.
  void send_rest() {
    node::TextPiece sent;
    sent.text = utf8_.finish();
    sent.of_prompt = of_prompt_;
    send(std::move(sent));
  }

 private:
  static std::string text_of(std::int32_t token, const data::Tokenizer& tokenizer) {
    return std::string(as_text(tokenizer.token_bytes(static_cast<data::TokenId>(token))));
  }
  static node::GeneratedToken to_node(const WrittenToken& from, const data::Tokenizer& tokenizer) {
    node::GeneratedToken to;
    to.token = static_cast<std::uint32_t>(from.token);
    to.text = text_of(from.token, tokenizer);
    if (!from.logprobs) return to;
    to.logprob = from.logprobs->chosen;
    for (const compute::TokenLogprob& likely : from.logprobs->top)
      to.top.push_back(
          {static_cast<std::uint32_t>(likely.token), text_of(likely.token, tokenizer), likely.logprob});
    return to;
  }
  void send(node::TextPiece piece) {
    if (on_text_ && (!piece.text.empty() || !piece.tokens.empty())) on_text_(std::move(piece));
  }

  const node::TextHandler on_text_;
  Utf8Stream utf8_;
  bool of_prompt_ = false;
};

}  // namespace

TextGeneration::TextGeneration(const EngineContext& context, SessionHost& host,
                               const TrainingController& training)
    : context_(context), host_(host), training_(training) {}

Expected<node::CommandId> TextGeneration::generate(const node::GenerateRequest& request,
                                                   node::TextHandler on_text) {
  if (context_.options.safe_mode) {
    return make_error(ErrorCode::Unavailable,
                      "safe mode: nothing is computed; start the core without --safe to generate text");
  }
  NS_ASSIGN_OR_RETURN(GenerateOptions options, options_of(request));
  options.seed = request.seed;
  if (options.seed == 0) {
    options.seed = static_cast<std::uint64_t>(context_.services.clock.wall_now().time_since_epoch().count());
  }
  const auto stream = std::make_shared<PieceStream>(std::move(on_text));
  options.on_piece = [this, stream](const WrittenPiece& piece) { stream->add(piece, tokenizer_); };
  const auto finish = [stream] { stream->send_rest(); };
  return context_.commands.accept([this, options = std::move(options), finish](node::CommandId id) mutable {
    if (texts_.size() >= max_texts) {
      return context_.commands.done(
          id, make_error(ErrorCode::Busy,
                         "several texts are being generated already; try again when one is complete"));
    }
    options.cancel = context_.commands.make_cancellable(id);
    texts_.push_back(std::make_shared<Text>(id, std::move(options)));
    texts_.back()->finish = finish;
  });
}

bool TextGeneration::is_next() const {
  if (texts_.empty()) return false;
  // A model that is about to be prepared serves the text as well.
  return !training_.steps() || (training_.prepared() && !had_turn_);
}

bool TextGeneration::start_next_turn() {
  if (!is_next()) {
    had_turn_ = false;
    return false;
  }
  had_turn_ = true;
  model_timer_.reset();
  const auto text = texts_.front();
  const Duration length = training_.prepared() && training_.steps() ? turn_beside_training : turn_alone;
  context_.jobs.start(
      [this, text, length](const CancelToken& interrupt) { return write(*text, interrupt, length); },
      [this, text](const Turn& turn) { on_turn(text, turn); });
  return true;
}

TextGeneration::Turn TextGeneration::write(Text& text, const CancelToken& interrupt, Duration length) {
  Expected<bool> complete = write_until(text, interrupt, length);
  return {std::move(complete), host_.has_text_model()};
}

Expected<bool> TextGeneration::write_until(Text& text, const CancelToken& interrupt, Duration length) {
  if (!host_.has_model() && text.cancel.cancelled())
    return make_error(ErrorCode::Cancelled, "stopped before the first token");
  const auto session = host_.open_for_text(interrupt);
  if (!session.ok()) {
    // More urgent work has arrived; the text continues afterwards.
    if (session.error().code == ErrorCode::Cancelled) return false;
    return session.error();
  }
  text.step = (*session)->steps_done();
  tokenizer_ = &(*session)->tokenizer();
  const Clock& clock = context_.services.clock;
  const MonotonicTime end = clock.monotonic_now() + length;
  const auto complete = text.writer.write(
      **session, clock, [&] { return interrupt.cancelled() || clock.monotonic_now() >= end; });
  if (complete.ok() && *complete) text.finish();
  return complete;
}

void TextGeneration::on_turn(const std::shared_ptr<Text>& text, const Turn& turn) {
  has_model_ = turn.has_text_model;
  if (turn.complete.ok() && !*turn.complete) {
    context_.publisher.emit(node::CommandProgress{text->command, "writing", text->writer.result().tokens, 0});
    // The other texts get their turns.
    std::rotate(texts_.begin(), texts_.begin() + 1, texts_.end());
    return;
  }
  texts_.pop_front();
  context_.commands.end_cancellable(text->command);
  if (texts_.empty() && has_model_) {
    model_timer_ = context_.core.post_after(model_kept, [this] {
      drop_model_ = true;
      context_.jobs.advance();
    });
  }
  finish(*text, turn.complete);
}

void TextGeneration::finish(const Text& text, const Expected<bool>& complete) {
  if (!complete.ok()) return context_.commands.done(text.command, complete.error());
  const Generation& written = text.writer.result();
  node::GenerateResult result;
  result.prompt_tokens = written.prompt_tokens;
  result.tokens = written.tokens;
  result.prompt_seconds = written.prompt_seconds;
  result.seconds = written.seconds;
  result.stopped_by = written.stopped   ? "cancelled"
                      : written.ended   ? "end of text"
                      : written.at_stop ? "stop sequence"
                                        : "length";
  result.step = text.step;
  std::optional<Error> error;
  if (written.stopped) error = make_error(ErrorCode::Cancelled, "the generation was stopped");
  context_.commands.done(text.command, error, result);
}

bool TextGeneration::drop_model_if_due() {
  if (!drop_model_ || !has_model_ || !texts_.empty()) return false;
  drop_model_ = false;
  context_.jobs.start(
      [this](const CancelToken&) {
        host_.close_text_model();
        return host_.has_text_model();
      },
      [this](bool has_model) { has_model_ = has_model; });
  return true;
}

}  // namespace neuroshard::engine::detail
