#include "core/pipeline/driver.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

constexpr Duration watch_interval = std::chrono::seconds(5);

void append_ids(Bytes& bytes, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids) append_le(bytes, id);
}

}  // namespace

Driver::Driver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
               DriverEvents events, Duration retry)
    : next_(std::move(events.next)),
      finish_(std::move(events.finished)),
      exchanges_(surroundings.exchanges),
      clock_(surroundings.clock),
      executor_(surroundings.executor),
      hop_(surroundings, {[this](const Result& done, const Bytes&) { result(done); },
                          [this](const Lost& one) { lead_.lost(one); },
                          [this] {
                            lead_.ready();
                            moved_ = clock_.monotonic_now();
                            pump();
                          }}),
      lead_(surroundings, key, std::move(network), std::move(route), std::move(events.lead), hop_, retry) {}

void Driver::start() {
  NS_CHECK(!started_);
  started_ = true;
  lead_.start();
  watch();
  pump();
}

void Driver::watch() {
  watch_timer_ = executor_.post_after(watch_interval, [this] { watch(); });
  const MonotonicTime now = clock_.monotonic_now();
  if (unfinished_.empty()) moved_ = now;
  if (!lead_.is_ready() || now - moved_ < patience) return;
  hop_.give_up(make_error(ErrorCode::Timeout, "no micro-batch came back from it in time"));
}

void Driver::wake() {
  pump();
}

void Driver::close() {
  if (std::exchange(closed_, true)) return;
  watch_timer_.reset();
  lead_.stop();
  hop_.close(oldest_unfinished());
}

std::uint64_t Driver::oldest_unfinished() const {
  return unfinished_.empty() ? next_index_ : unfinished_.begin()->first;
}

// A micro-batch that no later stage can compute would hold up the steps of the earlier ones.
void Driver::pump() {
  while (started_ && !closed_ && lead_.is_ready()) {
    const std::uint64_t oldest = oldest_unfinished();
    if (next_index_ - oldest >= route().window) return;
    auto text = next_();
    if (!text) return;
    const std::size_t tokens = std::size_t{text->sequences} * route().length;
    NS_CHECK(text->sequences >= 1 && text->sequences <= route().sequences && text->tokens.size() == tokens &&
             text->targets.size() == tokens);
    auto payload = std::make_shared<Bytes>();
    payload->reserve(2 * tokens * sizeof(std::int32_t));
    append_ids(*payload, text->targets);
    append_ids(*payload, text->tokens);
    unfinished_[next_index_] = {clock_.monotonic_now(), route().revision};
    hop_.send({next_index_++, oldest, text->sequences}, std::move(payload));
  }
}

void Driver::result(const Result& result) {
  const auto sent = unfinished_.extract(result.index);
  if (!sent.empty() && !result.times.empty() && sent.mapped().revision == route().revision)
    times_.add(route(), clock_.monotonic_now() - sent.mapped().at, result.times);
  ++finished_;
  moved_ = clock_.monotonic_now();
  exchanges_.finished_below(route().session, oldest_unfinished());
  finish_(result.index, result.sums);
  pump();
}

}  // namespace neuroshard::pipeline
