#include "core/pipeline/hop_session.h"

#include <utility>

namespace neuroshard::pipeline {
namespace {

constexpr std::size_t most_notices = 16;  // messages without a payload that wait for a reader

}  // namespace

HopSession::HopSession(const Surroundings& surroundings, const Route& route, std::size_t position)
    : around_(surroundings),
      route_(route),
      position_(position),
      next_(surroundings,
            {[this](const Result& result, Bytes payload) { returned(result, std::move(payload)); },
             [this](const Lost& lost) {
               ready_ = false;
               if (earlier_ != nullptr && !closed_) earlier_->send(encode_message(lost));
             },
             [this] {
               ready_ = true;
               tell_ready();
             }}),
      detached_at_(surroundings.clock.monotonic_now()),
      last_work_(detached_at_),
      route_changes_(route_changes_per_second, route_changes_at_once, detached_at_) {
  lead_on();
}

void HopSession::lead_on() {
  led_at_ = around_.clock.monotonic_now();
  ready_ = is_last();
  if (ready_)
    tell_ready();
  else
    next_.follow(route_, position_ + 1);
}

void HopSession::tell_ready() {
  if (ready_ && earlier_ != nullptr && !closed_) earlier_->send(encode_message(Ready{route_.revision}));
}

void HopSession::attach(FrameStream* earlier) {
  earlier_ = earlier;
  ++attachment_;
  if (earlier == nullptr) detached_at_ = around_.clock.monotonic_now();
  tell_ready();
}

void HopSession::follow(const Route& route) {
  route_ = route;
  position_ = route.position_of(around_.own).value();
  lead_on();
}

void HopSession::doubt_next(const Error& why) {
  if (ready_ && !is_last()) next_.give_up(why);
}

bool HopSession::may_change_route() {
  return route_changes_.try_take(1, around_.clock.monotonic_now());
}

Expected<std::size_t> HopSession::admit(const Message& message) const {
  const auto refuse = [](const char* text) { return make_error(ErrorCode::InvalidArgument, text); };
  if (std::holds_alternative<Result>(message) || std::holds_alternative<Lost>(message) ||
      std::holds_alternative<Ready>(message))
    return refuse("an earlier hop sends work, not results");
  const auto size = payload_bytes(message, route_, own_hop(), around_.shape);
  if (!size) return refuse("a micro-batch is larger than its session's");
  if (const auto* work = std::get_if<Work>(&message)) {
    if (is_crowded())
      return make_error(ErrorCode::Exhausted, "a hop of the session does not take what it is sent");
    if (auto admitted = admit_work(*work); !admitted.ok()) return admitted.error();
  }
  return *size;
}

// Twice the window: a node that comes back to its place has micro-batches that another one has finished.
bool HopSession::is_crowded() const {
  const std::size_t most = 2 * std::size_t{route_.window} + route_.positions + most_notices;
  return next_.waiting() > most || (earlier_ != nullptr && earlier_->waiting() > most);
}

void HopSession::close(std::uint64_t finished_below) {
  closed_ = true;
  if (!is_last()) next_.close(finished_below);
}

net::NodeId HopSession::earlier_node() const {
  return position_ == 0 ? crypto::node_id(route_.driver) : route_.hops[position_ - 1].node;
}

}  // namespace neuroshard::pipeline
