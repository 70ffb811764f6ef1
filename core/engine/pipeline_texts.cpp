#include "core/engine/pipeline_texts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {
namespace {

// An interrupt is noticed within this time, when no job runs. An answer comes with a job of its own.
constexpr Duration look_at_token = std::chrono::milliseconds(20);

Error no_pipeline() {
  return make_error(
      ErrorCode::Unavailable,
      "This node holds a part of the model, and is not connected to the holders of the others.");
}

// Into the part's own room. Positions without a target keep their values.
void give(const pipeline::TextDriver::Answer& answer, const compute::SessionPart& part) {
  if (part.logits != nullptr) std::copy(answer.logits.begin(), answer.logits.end(), part.logits);
  const compute::TokenScores& room = part.scores;
  if (room.targets == nullptr) return;
  for (std::size_t i = 0; i < part.n; ++i) {
    if (room.targets[i] < 0) continue;
    room.logprobs[i] = answer.scores.logprobs[i];
    for (std::size_t j = i * room.top; j < (i + 1) * room.top; ++j) {
      room.top_tokens[j] = answer.scores.top_tokens[j];
      room.top_logprobs[j] = answer.scores.top_logprobs[j];
    }
  }
}

}  // namespace

// Of the calls that one extend_sessions() waits for. The answers arrive on another thread.
struct PipelineTexts::Wait {
  struct Shared {
    std::mutex mutex;
    std::size_t missing = 0;
    std::optional<Error> error;
    std::vector<pipeline::TextDriver::Answer> answers;  // by part
  };
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  std::uint64_t listeners = 0;

  Answer answer(std::size_t part, const std::shared_ptr<JobQueue>& jobs) {
    const std::lock_guard lock(shared->mutex);
    ++shared->missing;
    return [shared = shared, part, jobs](Expected<pipeline::TextDriver::Answer> answer) {
      {
        const std::lock_guard its_lock(shared->mutex);
        --shared->missing;
        if (answer.ok())
          shared->answers[part] = std::move(answer).value();
        else if (!shared->error)
          shared->error = answer.error();
      }
      static_cast<void>(jobs->texts().post([] {}));  // ends the wait
    };
  }
  bool over() const {
    const std::lock_guard lock(shared->mutex);
    return shared->missing == 0 || shared->error;
  }
};

void PipelineTexts::listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  ++listeners_;
}

bool PipelineTexts::post(const std::function<Executor::Task(const Listener&)>& make) {
  const std::lock_guard lock(mutex_);
  return listener_.executor != nullptr && listener_.executor->post(make(listener_));
}

bool PipelineTexts::evaluate(Losses losses) {
  const std::lock_guard lock(mutex_);
  return listener_.executor != nullptr && listener_.evaluate &&
         listener_.executor->post(
             [evaluate = listener_.evaluate, losses = std::move(losses)] { evaluate(losses); });
}

Expected<void> PipelineTexts::open_session(std::uint64_t session, std::uint32_t capacity,
                                           const Scores& scores) {
  const bool posted = post([&](const Listener& listener) {
    return [open = listener.open, session, capacity, scores] { open(session, capacity, scores); };
  });
  if (!posted) return no_pipeline();
  open_[session] = scores;
  return {};
}

void PipelineTexts::close_session(std::uint64_t session) {
  open_.erase(session);
  static_cast<void>(
      post([&](const Listener& listener) { return [close = listener.close, session] { close(session); }; }));
}

Expected<void> PipelineTexts::extend_sessions(std::uint32_t count, const compute::SessionPart* parts) {
  NS_CHECK(jobs_);
  Wait wait;
  wait.listeners = listeners_;
  wait.shared->answers.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const compute::SessionPart& part = parts[i];
    if (part.hidden != nullptr)
      return make_error(ErrorCode::Unsupported,
                        "The members of this network hold parts of the model: it generates text, but gives "
                        "no embeddings.");
    const bool wanted = part.logits != nullptr || part.scores.targets != nullptr;
    Answer answer = wanted ? wait.answer(i, jobs_) : nullptr;
    const bool posted = post([&](const Listener& listener) {
      return [extend = listener.extend, session = part.session, piece = piece_of(part),
              answer = std::move(answer)] { extend(session, piece, answer); };
    });
    if (!posted) return no_pipeline();
  }
  const Expected<void> answered = wait_for(wait);
  if (waited_) waited_();
  NS_RETURN_IF_ERROR(answered);
  for (std::uint32_t i = 0; i < count; ++i) give(wait.shared->answers[i], parts[i]);
  return {};
}

PipelineTexts::Listener::Piece PipelineTexts::piece_of(const compute::SessionPart& part) const {
  Listener::Piece piece;
  piece.tokens.assign(part.tokens, part.tokens + part.n);
  const auto open = open_.find(part.session);
  if (open == open_.end() || !open->second) return piece;
  if (part.scores.targets == nullptr)
    piece.targets.assign(part.n, -1);
  else
    piece.targets.assign(part.scores.targets, part.scores.targets + part.n);
  return piece;
}

Expected<void> PipelineTexts::wait_for(Wait& wait) {
  while (!wait.over()) {
    if (interrupt_.cancelled()) return make_error(ErrorCode::Cancelled, "more urgent work has arrived");
    if (listeners_ != wait.listeners) return no_pipeline();
    if (waiting_) waiting_();
    static_cast<void>(jobs_->run_text(look_at_token));
  }
  const std::lock_guard lock(wait.shared->mutex);
  if (wait.shared->error) return *wait.shared->error;
  return {};
}

}  // namespace neuroshard::engine
