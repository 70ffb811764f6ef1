#include "core/engine/part_evaluation.h"

#include <mutex>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {
namespace {

Error not_connected() {
  return make_error(ErrorCode::Unavailable, "this node is not connected to the holders of the other parts");
}

}  // namespace

// Of one evaluation. The answers hold it.
struct PartEvaluation::State : std::enable_shared_from_this<State> {
  State(PipelineTexts& of, Text what) : texts(of), connection(of.connection()), text(std::move(what)) {}

  void ask();
  void answered(const Expected<pipeline::Sums>& answer);
  void end(Expected<pipeline::Sums> with) {
    if (!result) result = std::move(with);
  }

  PipelineTexts& texts;
  const std::uint64_t connection;
  const Text text;

  std::mutex mutex;
  std::uint32_t restarts = 0;
  std::uint64_t round = 0;  // of the result
  std::optional<Expected<pipeline::Sums>> result;
};

void PartEvaluation::State::ask() {
  const bool asked =
      texts.evaluate({text.length, text.pieces, [self = shared_from_this()](const auto& answer) {
                        const std::lock_guard lock(self->mutex);
                        self->answered(answer);
                      }});
  if (!asked) end(not_connected());
}

void PartEvaluation::State::answered(const Expected<pipeline::Sums>& answer) {
  if (result) return;
  round = texts.round();
  if (answer.ok() || answer.error().code != ErrorCode::Cancelled) return end(answer);
  if (++restarts > most_restarts)
    return end(make_error(ErrorCode::Cancelled, "rounds end before the text is measured"));
  ask();
}

void PartEvaluation::begin(Text text) {
  NS_CHECK(state_ == nullptr && !text.pieces.empty());
  state_ = std::make_shared<State>(texts_, std::move(text));
  const std::lock_guard lock(state_->mutex);
  state_->ask();
}

std::optional<Expected<train::Evaluation>> PartEvaluation::take() {
  if (!state_) return std::nullopt;
  const std::shared_ptr<State> state = state_;
  const std::lock_guard lock(state->mutex);
  if (state->connection != texts_.connection()) state->end(not_connected());
  if (!state->result) return std::nullopt;
  state_.reset();
  if (!state->result->ok()) return state->result->error();
  measured_ = state->round;
  const pipeline::Sums& sums = **state->result;
  return train::evaluation_of(sums.loss, sums.target_tokens, state->text.bytes);
}

void PartEvaluation::stop() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->end(make_error(ErrorCode::Cancelled, "training has ended"));
}

}  // namespace neuroshard::engine
