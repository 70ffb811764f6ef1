#include "core/pipeline/driver.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

void append_ids(Bytes& bytes, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids) append_le(bytes, id);
}

}  // namespace

Driver::Driver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
               DriverEvents events, Duration retry)
    : key_(key),
      network_(std::move(network)),
      events_(std::move(events)),
      retry_(retry),
      executor_(surroundings.executor),
      clock_(surroundings.clock),
      exchanges_(surroundings.exchanges),
      route_(std::move(route)),
      hop_(surroundings, {[this](const Result& done, const Bytes&) { result(done); },
                          [this](const Lost& one) { lost(one); }}) {
  sign_route(route_, key_, network_);
}

void Driver::start() {
  NS_CHECK(!started_);
  started_ = true;
  hop_.follow(route_, 0);
  pump();
}

void Driver::wake() {
  pump();
}

void Driver::close() {
  if (std::exchange(closed_, true)) return;
  retries_.clear();
  hop_.close(oldest_unfinished());
}

std::uint64_t Driver::oldest_unfinished() const {
  return unfinished_.empty() ? next_index_ : *unfinished_.begin();
}

void Driver::pump() {
  while (started_ && !closed_) {
    const std::uint64_t oldest = oldest_unfinished();
    if (next_index_ - oldest >= route_.window) return;
    auto text = events_.next();
    if (!text) return;
    const std::size_t tokens = std::size_t{text->sequences} * route_.length;
    NS_CHECK(text->sequences >= 1 && text->sequences <= route_.sequences && text->tokens.size() == tokens &&
             text->targets.size() == tokens);
    auto payload = std::make_shared<Bytes>();
    payload->reserve(2 * tokens * sizeof(std::int32_t));
    append_ids(*payload, text->targets);
    append_ids(*payload, text->tokens);
    unfinished_.insert(next_index_);
    hop_.send({next_index_++, oldest, text->sequences}, std::move(payload));
  }
}

void Driver::result(const Result& result) {
  unfinished_.erase(result.index);
  ++finished_;
  exchanges_.finished_below(route_.session, oldest_unfinished());
  events_.finished(result.index, result.sums);
  pump();
}

void Driver::lost(const Lost& lost) {
  if (closed_ || lost.position >= route_.hops.size()) return;
  // Somebody else is there by now.
  if (route_.hops[lost.position].node != lost.node) return;
  if (events_.lost) events_.lost(lost);
  lead_around(lost);
}

// Holders that all refuse are asked no more often than every `retry`.
void Driver::lead_around(const Lost& lost) {
  RouteHop& hop = route_.hops[lost.position];
  const MonotonicTime now = clock_.monotonic_now();
  const auto before = replaced_at_.find(lost.position);
  const bool too_early = before != replaced_at_.end() && now - before->second < retry_;
  const auto other = too_early ? std::nullopt : events_.replace(hop.range, hop.node);
  if (!other) {
    retries_[lost.position] = executor_.post_after(retry_, [this, lost] { lead_around(lost); });
    return;
  }
  hop.node = *other;
  replaced_at_[lost.position] = now;
  ++route_.revision;
  ++replaced_;
  sign_route(route_, key_, network_);
  hop_.follow(route_, 0);
}

}  // namespace neuroshard::pipeline
