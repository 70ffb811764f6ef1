#include "core/engine/detail/text_wait.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/engine/detail/job_scheduler.h"
#include "core/engine/detail/snapshot_publisher.h"

namespace neuroshard::engine::detail {
namespace {

constexpr Duration longest_text_wait = std::chrono::seconds(60);
constexpr Duration look_again = std::chrono::seconds(1);  // at a text that is being fetched
constexpr const char* text_alert = "data";

}  // namespace

TextWait::TextWait(const EngineContext& context, TrainingProgress& progress)
    : context_(context), progress_(progress) {}

void TextWait::begin(const Error& error) {
  waits_ = true;
  show();
  const bool comes = error.code == ErrorCode::Busy;
  const Duration wait = comes ? std::min(look_again, context_.options.text_retry) : tell(error);
  context_.publisher.publish();
  timer_ = context_.core.post_after(wait, [this] {
    timer_.reset();
    context_.jobs.advance();
  });
}

Duration TextWait::tell(const Error& error) {
  const bool first = length_ == Duration{};
  // Other members may give the text as soon as they are there, and rounds don't wait for it.
  const Duration longest = context_.options.rounds ? context_.options.text_retry : longest_text_wait;
  length_ = first ? context_.options.text_retry : std::min(longest, 2 * length_);
  const std::string message =
      "The text to train on can't be fetched; the node tries again by itself. Check the network and the "
      "disk: " +
      error.describe();
  if (first) context_.services.logger.warning("data", message);
  context_.publisher.raise({text_alert, node::Severity::Warning, message, {}});
  return length_;
}

void TextWait::show() {
  progress_.set_activity("waiting for data");
}

void TextWait::end() {
  timer_.reset();
  if (!std::exchange(waits_, false)) return;
  length_ = {};
  progress_.set_activity({});
  context_.publisher.clear(text_alert);
}

}  // namespace neuroshard::engine::detail
