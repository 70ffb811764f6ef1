#include "core/engine/detail/text_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/engine/utf8_stream.h"

namespace neuroshard::engine::detail {
namespace {

constexpr double turn_alone_seconds = 1;  // then other commands may run
constexpr Duration model_kept = std::chrono::seconds(60);
constexpr std::size_t max_texts = max_batch_texts;
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
  options.embedding = request.embedding;
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
    // Without a model only cancelled texts end, whose last tokens nobody waits for.
    if (tokenizer != nullptr)
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

// Of the settings, which change on the compute thread.
double share_of(const config::DataDirectory& directory) {
  return static_cast<double>(directory.settings().number(config::Setting::GenerationShare)) / 100.0;
}

}  // namespace

TextGeneration::TextGeneration(const EngineContext& context, SessionHost& host,
                               const TrainingController& training)
    : context_(context),
      host_(host),
      training_(training),
      batch_(context.services.clock),
      share_(share_of(context.directory)) {}

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
  return context_.commands.accept([this, client = request.client, checkpoint = request.checkpoint,
                                   options = std::move(options), finish](node::CommandId id) mutable {
    if (texts_.size() >= max_texts) {
      return context_.commands.done(
          id, make_error(ErrorCode::Busy,
                         "several texts are being generated already; try again when one is complete"));
    }
    options.cancel = context_.commands.make_cancellable(id);
    const auto text = std::make_shared<Text>(id, client, checkpoint, std::move(options));
    text->finish = finish;
    texts_.push_back(text);
    const std::lock_guard lock(mutex_);
    joining_.push_back(text);
  });
}

// Bills the time since the last job of the texts to the training.
void TextGeneration::count_training() {
  const MonotonicTime now = context_.services.clock.monotonic_now();
  if (training_since_) share_.add_training(to_seconds(now - *training_since_), !texts_.empty());
  training_since_.reset();
}

std::optional<WorkShare::Turn> TextGeneration::next_turn() {
  if (texts_.empty()) return std::nullopt;
  if (!training_.steps()) return WorkShare::Turn{turn_alone_seconds, {}};
  // A model that is about to be prepared serves the text as well.
  if (!training_.prepared()) return std::nullopt;
  std::vector<std::string> waiting;
  for (const auto& text : texts_)
    if (text->writer.result().tokens == 0) waiting.push_back(text->client);
  return share_.next_turn(waiting);
}

bool TextGeneration::start_next_turn() {
  count_training();
  const bool beside_training = training_.prepared() && training_.steps();
  const MonotonicTime now = context_.services.clock.monotonic_now();
  const auto turn = next_turn();
  if (!turn) {
    if (beside_training) training_since_ = now;
    return false;
  }
  model_timer_.reset();
  context_.jobs.start(
      [this, turn = *turn](const CancelToken& interrupt) {
        write(interrupt, turn);
        return Turn{share_of(context_.directory), host_.has_text_model()};
      },
      [this, now, beside_training](const Turn& done) {
        if (beside_training) share_.add_text(to_seconds(context_.services.clock.monotonic_now() - now));
        on_turn(done);
      });
  return true;
}

// The texts of one checkpoint are written together. Those of another one wait until they are complete, and so do
// all that come after those.
void TextGeneration::choose_checkpoint() {
  const std::lock_guard lock(mutex_);
  if (generating_.empty() && !joining_.empty()) checkpoint_ = joining_.front()->checkpoint;
}

std::vector<std::shared_ptr<TextWriter>> TextGeneration::take_joining() {
  std::vector<std::shared_ptr<Text>> joining, waiting;
  {
    const std::lock_guard lock(mutex_);
    bool same = true;
    for (const auto& text : joining_) {
      same = same && text->checkpoint == checkpoint_;
      // A cancelled one leaves at once.
      (same || text->writer.cancelled() ? joining : waiting).push_back(text);
    }
    joining_.swap(waiting);
  }
  std::vector<std::shared_ptr<TextWriter>> writers;
  for (const auto& text : joining) {
    writers.emplace_back(text, &text->writer);
    generating_.emplace(&text->writer, text);
  }
  return writers;
}

void TextGeneration::on_text_done(const TextWriter& writer, const Expected<void>& outcome,
                                  std::uint64_t step) {
  const auto at = generating_.find(&writer);
  const std::shared_ptr<Text> text = at->second;
  generating_.erase(at);
  if (outcome.ok()) text->finish();
  // At once: the turn may go on with other texts for long.
  context_.arrivals.put([this, text, outcome, step] { leave(text, outcome, step); });
}

void TextGeneration::write(const CancelToken& interrupt, const WorkShare::Turn& turn) {
  TextBatch::Hooks hooks;
  std::uint64_t step = 0;
  hooks.arrivals = [this] { return take_joining(); };
  hooks.on_done = [this, &step](const std::shared_ptr<TextWriter>& writer, const Expected<void>& outcome) {
    on_text_done(*writer, outcome, step);
  };
  if (turn.only) {
    hooks.takes_part = [this, &turn](const TextWriter& writer) {
      return writer.result().tokens == 0 && generating_.at(&writer)->client == *turn.only;
    };
  }
  choose_checkpoint();
  if (!host_.has_model()) tokenizer_ = nullptr;  // it was the model's
  // A model is not opened for cancelled texts.
  if (!host_.has_model() || batch_.empty()) batch_.take(hooks);
  if (batch_.empty()) return;
  const auto session = host_.open_for_text(interrupt, checkpoint_);
  if (!session.ok()) {
    // Cancelled: more urgent work has arrived, and the texts continue afterwards.
    if (session.error().code != ErrorCode::Cancelled) batch_.fail(session.error(), hooks);
    return;
  }
  step = host_.text_step();
  tokenizer_ = &(*session)->tokenizer();
  const Clock& clock = context_.services.clock;
  const MonotonicTime end = clock.monotonic_now() +
                            std::chrono::duration_cast<Duration>(std::chrono::duration<double>(turn.seconds));
  hooks.turn_over = [&] { return interrupt.cancelled() || clock.monotonic_now() >= end; };
  batch_.write(**session, host_.weights(), hooks);
  // The training changes the weights, and needs the memory.
  if (!host_.keeps_windows()) batch_.drop_windows((*session)->text_model());
}

void TextGeneration::on_turn(const Turn& turn) {
  share_.set(turn.share);
  has_model_ = turn.has_text_model;
  for (const auto& text : texts_)
    context_.publisher.emit(node::CommandProgress{text->command, "writing", text->writer.result().tokens, 0});
  keep_model_for_a_while();
}

void TextGeneration::keep_model_for_a_while() {
  if (!texts_.empty() || !has_model_) return;
  model_timer_ = context_.core.post_after(model_kept, [this] {
    drop_model_ = true;
    context_.jobs.advance();
  });
}

void TextGeneration::leave(const std::shared_ptr<Text>& text, const Expected<void>& outcome,
                           std::uint64_t step) {
  texts_.erase(std::find(texts_.begin(), texts_.end(), text));
  if (texts_.empty()) share_.no_text_waits();
  context_.commands.end_cancellable(text->command);
  text->step = step;
  finish(*text, outcome);
}

void TextGeneration::finish(const Text& text, const Expected<void>& outcome) {
  if (!outcome.ok()) return context_.commands.done(text.command, outcome.error());
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
  result.embedding = written.embedding;
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
