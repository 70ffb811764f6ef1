// Text from the model that trains, between its steps. A text has turns of two seconds, and between two of
// them one training step is done: the first word comes after at most one step, long texts do not stop the
// training, and short ones (hundreds of tokens) delay it by about a second. Each turn reads the window again,
// because the step before it has changed the weights. Without training, the newest checkpoint is read,
// weights only, and kept for a minute.
#include <fmt/format.h>

#include <algorithm>

#include "core/engine/detail/engine_core.h"

namespace neuroshard::engine::detail {
namespace {

constexpr Duration turn_beside_training = std::chrono::seconds(2);
constexpr Duration turn_alone = std::chrono::seconds(1);  // between two looks at what else is asked for
constexpr Duration text_model_kept = std::chrono::seconds(60);
constexpr std::size_t max_writings = 4;

Expected<GenerateOptions> options_of(const node::GenerateRequest& request) {
  const auto refuse = [](std::string text) {
    return make_error(ErrorCode::InvalidArgument, std::move(text));
  };
  if (request.prompt.size() > node::max_prompt_bytes) {
    return refuse(fmt::format("the prompt has {} bytes; at most {} are read", request.prompt.size(),
                              node::max_prompt_bytes));
  }
  if (request.max_tokens < 1 || request.max_tokens > node::max_generated_tokens) {
    return refuse(fmt::format("{} tokens are asked for; ask for 1 to {}", request.max_tokens,
                              node::max_generated_tokens));
  }
  GenerateOptions options;
  options.prompt = request.prompt;
  options.max_tokens = request.max_tokens;
  options.sampling = {.temperature = static_cast<float>(request.temperature),
                      .top_k = request.top_k,
                      .top_p = static_cast<float>(request.top_p)};
  NS_RETURN_IF_ERROR(compute::validate(options.sampling));
  return options;
}

}  // namespace

Expected<node::CommandId> EngineCore::generate(const node::GenerateRequest& request,
                                               std::function<void(std::string)> on_text) {
  if (options_.safe_mode) {
    return make_error(ErrorCode::Unavailable,
                      "safe mode: nothing is computed; start the core without --safe to generate text");
  }
  NS_ASSIGN_OR_RETURN(GenerateOptions options, options_of(request));
  options.seed = request.seed;
  if (options.seed == 0)
    options.seed = static_cast<std::uint64_t>(services_.clock.wall_now().time_since_epoch().count());
  // Valid UTF-8 only goes out, whatever bytes the model writes.
  const auto stream = std::make_shared<Utf8Stream>();
  options.on_text = [stream, on_text](std::string_view piece) {
    const std::string text = stream->add(piece);
    if (on_text && !text.empty()) on_text(text);
  };
  return accept([this, options = std::move(options), stream, on_text](node::CommandId id) mutable {
    if (shutting_down_) return done(id, make_error(ErrorCode::Cancelled, "the node is shutting down"));
    if (writings_.size() >= max_writings)
      return done(id, make_error(ErrorCode::Busy, "several texts are being written already; wait for one"));
    options.cancel = cancellable_[id].token();
    auto writing = std::make_shared<Writing>(id, std::move(options));
    writing->finish = [stream, on_text] {
      const std::string rest = stream->finish();
      if (on_text && !rest.empty()) on_text(rest);
    };
    writings_.push_back(std::move(writing));
  });
}

bool EngineCore::text_is_next() const {
  if (writings_.empty()) return false;
  const bool trains = run_ && may_train() && !stop_requested_;
  // A model that is about to be loaded serves the text as well.
  return !trains || (run_->prepared && !text_had_turn_);
}

void EngineCore::text_job() {
  const auto writing = writings_.front();
  const bool beside = run_ && run_->prepared && may_train();
  text_had_turn_ = true;
  cancel_ = CancelSource();
  text_model_timer_.reset();
  start_job([this, writing, interrupt = cancel_.token(), turn = beside ? turn_beside_training : turn_alone] {
    auto complete = write_text(*writing, interrupt, turn);
    const bool opened = text_session_ != nullptr;
    return [this, writing, complete = std::move(complete), opened] {
      text_model_open_ = opened;
      on_text(writing, complete);
    };
  });
}

Expected<bool> EngineCore::write_text(Writing& writing, const CancelToken& interrupt, Duration turn) {
  if (!session_ && !text_session_) {
    if (writing.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the first word");
    PrepareOptions options;
    options.mode = SessionMode::Generate;
    options.cancel = interrupt;
    NS_ASSIGN_OR_RETURN(auto opened, options_.make_session(*directory_, {services_.files, services_.clock,
                                                                         services_.logger, history_}));
    const auto prepared = opened->prepare(options);
    // Something more urgent: the text is taken up again afterwards.
    if (!prepared.ok() && prepared.error().code == ErrorCode::Cancelled) return false;
    if (!prepared.ok()) return prepared.error();
    text_session_ = std::move(opened);
  }
  TrainingSession& session = session_ ? *session_ : *text_session_;
  writing.step = session.steps_done();
  const MonotonicTime end = services_.clock.monotonic_now() + turn;
  const auto complete = writing.writer.write(session, services_.clock, [&] {
    return interrupt.cancelled() || services_.clock.monotonic_now() >= end;
  });
  if (complete.ok() && *complete) writing.finish();
  return complete;
}

void EngineCore::on_text(const std::shared_ptr<Writing>& writing, Expected<bool> complete) {
  const Generation& written = writing->writer.result();
  if (complete.ok() && !*complete) {
    emit(node::CommandProgress{writing->command, "writing", written.tokens, 0});
    // Others have their turn as well.
    std::rotate(writings_.begin(), writings_.begin() + 1, writings_.end());
    return;
  }
  writings_.pop_front();
  cancellable_.erase(writing->command);
  if (writings_.empty() && text_model_open_) {
    text_model_timer_ = core_->post_after(text_model_kept, [this] {
      drop_text_model_ = true;
      advance();
    });
  }
  if (!complete.ok()) return done(writing->command, complete.error());
  node::GenerateResult result;
  result.prompt_tokens = written.prompt_tokens;
  result.tokens = written.tokens;
  result.prompt_seconds = written.prompt_seconds;
  result.seconds = written.seconds;
  result.stopped_by = written.stopped ? "cancelled" : written.ended ? "end of text" : "length";
  result.step = writing->step;
  if (written.stopped)
    return done(writing->command, make_error(ErrorCode::Cancelled, "the text was stopped"), result);
  done(writing->command, std::nullopt, result);
}

void EngineCore::drop_text_model_job() {
  drop_text_model_ = false;
  start_job([this] {
    text_session_.reset();
    return [this] { text_model_open_ = false; };
  });
}

}  // namespace neuroshard::engine::detail
