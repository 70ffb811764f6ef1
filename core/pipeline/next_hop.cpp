#include "core/pipeline/next_hop.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {

NextHop::NextHop(const Surroundings& surroundings, Events events)
    : around_(surroundings), events_(std::make_shared<const Events>(std::move(events))) {}

void NextHop::follow(const Route& route, std::size_t position) {
  NS_CHECK(position < route.hops.size());
  const bool same = (stream_ != nullptr || opening_) && hop() == route.hops[position];
  route_ = route;
  position_ = position;
  reported_.clear();
  await_ready();
  if (!same) return open();
  if (stream_ != nullptr) stream_->send(encode_message(Follow{route_}));
}

void NextHop::await_ready() {
  if (!events_->ready) return;
  const auto hops = static_cast<std::int64_t>(route_.hops.size() - position_);
  patience_ = around_.executor.post_after(hops * around_.times.ready, [this] {
    lose(make_error(ErrorCode::Unavailable, "the peer is there and does not get ready for the session"));
  });
}

void NextHop::open() {
  stream_.reset();
  opening_ = true;
  turn_.reset();  // before the next one waits for its own
  turn_ = around_.lines.open(hop().node, [this, attempt = ++attempt_, life = lifetime_.token()](
                                             Expected<std::shared_ptr<net::PeerStream>> stream) {
    if (!life.alive() || attempt != attempt_) return;
    opening_ = false;
    if (!stream.ok()) return lose(stream.error());
    opened(std::move(stream).value());
  });
}

void NextHop::opened(std::shared_ptr<net::PeerStream> stream) {
  FrameStream::Events events;
  events.admit = [this](ByteSpan header) { return admit(header); };
  events.received = [this](const Bytes& header, Bytes payload) { received(header, std::move(payload)); };
  events.ended = [this](const Error& error) {
    stream_.reset();
    lose(error);
  };
  stream_ = std::make_unique<FrameStream>(std::move(stream), around_.executor, around_.clock, around_.times,
                                          encode_message(Alive{}), std::move(events));
  stream_->send(encode_message(Follow{route_}));
  for (const auto& [index, sent] : kept_) transmit(sent);
}

void NextHop::send(const Work& work, SharedBytes payload) {
  if (work.index < finished_below_) return;
  const std::size_t tokens = std::size_t{work.sequences} * route_.length;
  const std::uint64_t targets = route_.positions == 0 ? count_targets(*payload, tokens) : 0;
  const auto [entry, is_new] = kept_.emplace(work.index, Sent{work, std::move(payload), targets});
  NS_CHECK(is_new);
  if (work.result_wanted()) unanswered_.insert(work.index);
  if (stream_ != nullptr) transmit(entry->second);
}

void NextHop::transmit(const Sent& sent) {
  Work work = sent.work;
  if (route_.kind == SessionKind::Text)
    work.finished_below = unanswered_.contains(work.index) ? *unanswered_.begin() : work.index + 1;
  else
    around_.exchanges.note({route_.session, work.index, Direction::Work, around_.own, hop().node},
                           *sent.payload);
  stream_->send(encode_message(work), sent.payload);
}

void NextHop::forget_below(std::uint64_t index) {
  if (index <= finished_below_) return;
  finished_below_ = index;
  kept_.erase(kept_.begin(), kept_.lower_bound(index));
  unanswered_.erase(unanswered_.begin(), unanswered_.lower_bound(index));
}

void NextHop::close(std::uint64_t finished_below) {
  patience_.reset();
  unanswered_.clear();
  kept_.clear();
  if (stream_ != nullptr) stream_->send(encode_message(Close{finished_below}));
}

Expected<std::size_t> NextHop::admit(ByteSpan header) const {
  const auto message = decode_message(header);
  if (!message.ok()) return message.error();
  if (std::holds_alternative<Alive>(*message) || std::holds_alternative<Ready>(*message))
    return std::size_t{0};
  if (const auto* lost = std::get_if<Lost>(&*message); lost != nullptr && lost->position > position_)
    return std::size_t{0};
  const auto* result = std::get_if<Result>(&*message);
  const bool forgotten = result != nullptr && result->index < finished_below_;
  if (result == nullptr || (!forgotten && !unanswered_.contains(result->index)))
    return make_error(ErrorCode::InvalidArgument,
                      "a later hop may send results of work that it got, losses, and that it is ready");
  const auto size = payload_bytes(*message, route_, hop(), around_.shape);
  if (!size || (!forgotten && !fits(*result)))
    return make_error(ErrorCode::InvalidArgument,
                      "a result has not the tokens or the targets of its micro-batch");
  const std::size_t hops = route_.kind == SessionKind::Training ? route_.hops.size() - position_ : 0;
  if (result->times.size() != hops)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a result has the times of {} hops and the route has {} from there on: do the "
                    "nodes run different versions?",
                    result->times.size(), hops));
  return *size;
}

// Means are over the targets that the head says it counted.
bool NextHop::fits(const Result& result) const {
  const Sent& sent = kept_.at(result.index);
  return result.sums.tokens == std::uint64_t{sent.work.sequences} * route_.length &&
         (route_.positions > 0 || result.sums.target_tokens == sent.targets);
}

void NextHop::received(ByteSpan header, Bytes payload) {
  const Message message = decode_message(header).value();  // admitted
  const std::shared_ptr<const Events> events = events_;
  if (const auto* lost = std::get_if<Lost>(&message)) return received(*lost);
  if (const auto* ready = std::get_if<Ready>(&message)) {
    if (ready->revision != route_.revision || !events->ready || patience_ == nullptr) return;
    patience_.reset();
    return events->ready();
  }
  const auto* result = std::get_if<Result>(&message);
  if (result == nullptr || unanswered_.erase(result->index) == 0) return;  // else forgotten meanwhile
  if (route_.kind == SessionKind::Training) {
    around_.exchanges.note({route_.session, result->index, Direction::Result, hop().node, around_.own},
                           payload);
  }
  if (route_.positions == 0) kept_.erase(result->index);  // no cache needs it again
  events->result(*result, std::move(payload));
}

// Of each hop of a route once: more would fill the queues of the hops before, and the log of the driver.
void NextHop::received(const Lost& lost) {
  if (lost.position >= route_.hops.size() || route_.hops[lost.position].node != lost.node) return;
  if (!reported_.insert(lost.position).second) return;
  patience_.reset();
  const std::shared_ptr<const Events> events = events_;
  events->lost(lost);
}

void NextHop::give_up(const Error& why) {
  stream_.reset();
  turn_.reset();
  ++attempt_;
  opening_ = false;
  lose(why);
}

void NextHop::lose(const Error& error) {
  patience_.reset();
  const std::shared_ptr<const Events> events = events_;
  events->lost({static_cast<std::uint8_t>(position_), hop().node, error.message});
}

}  // namespace neuroshard::pipeline
