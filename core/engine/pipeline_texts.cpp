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

}  // namespace

// Of the calls that one extend_sessions() waits for. The answers arrive on another thread.
struct PipelineTexts::Wait {
  struct Shared {
    std::mutex mutex;
    std::size_t missing = 0;
    std::optional<Error> error;
    std::vector<std::vector<float>> logits;  // by part
  };
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  std::uint64_t listeners = 0;

  Answer answer(std::size_t part, const std::shared_ptr<JobQueue>& jobs) {
    const std::lock_guard lock(shared->mutex);
    ++shared->missing;
    return [shared = shared, part, jobs](Expected<std::vector<float>> logits) {
      {
        const std::lock_guard its_lock(shared->mutex);
        --shared->missing;
        if (logits.ok())
          shared->logits[part] = std::move(logits).value();
        else if (!shared->error)
          shared->error = logits.error();
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

Expected<void> PipelineTexts::open_session(std::uint64_t session, std::uint32_t capacity) {
  const bool posted = post([&](const Listener& listener) {
    return [open = listener.open, session, capacity] { open(session, capacity); };
  });
  if (!posted) return no_pipeline();
  return {};
}

void PipelineTexts::close_session(std::uint64_t session) {
  static_cast<void>(
      post([&](const Listener& listener) { return [close = listener.close, session] { close(session); }; }));
}

Expected<void> PipelineTexts::extend_sessions(std::uint32_t count, const compute::SessionPart* parts) {
  NS_CHECK(jobs_);
  Wait wait;
  wait.listeners = listeners_;
  wait.shared->logits.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const compute::SessionPart& part = parts[i];
    if (part.hidden != nullptr || part.scores.targets != nullptr)
      return make_error(
          ErrorCode::Unsupported,
          "The members of this network hold parts of the model: it generates text, but gives neither "
          "embeddings nor the log-probabilities of a prompt.");
    std::vector<std::int32_t> tokens(part.tokens, part.tokens + part.n);
    Answer answer = part.logits == nullptr ? nullptr : wait.answer(i, jobs_);
    const bool posted = post([&](const Listener& listener) {
      return [extend = listener.extend, session = part.session, tokens = std::move(tokens),
              answer = std::move(answer)] { extend(session, tokens, answer); };
    });
    if (!posted) return no_pipeline();
  }
  NS_RETURN_IF_ERROR(wait_for(wait));
  for (std::uint32_t i = 0; i < count; ++i)
    if (parts[i].logits != nullptr)
      std::copy(wait.shared->logits[i].begin(), wait.shared->logits[i].end(), parts[i].logits);
  return {};
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
