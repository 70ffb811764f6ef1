#include "core/pipeline/frame_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

constexpr std::size_t max_header_bytes = 8u << 10;  // a route of 64 hops has under 3 KiB
constexpr std::size_t prefix = sizeof(std::uint32_t);

Error broke_the_rules(const char* what) {
  return make_error(ErrorCode::InvalidArgument, what);
}

}  // namespace

FrameStream::FrameStream(std::shared_ptr<net::PeerStream> stream, Executor& executor, const Clock& clock,
                         FrameTimes times, Bytes alive, Events events)
    : stream_(std::move(stream)),
      executor_(executor),
      clock_(clock),
      times_(times),
      alive_(std::move(alive)),
      events_(std::make_shared<Events>(std::move(events))),
      last_sent_(clock.monotonic_now()),
      last_heard_(last_sent_) {
  read_next();
  timer_ = executor_.post_after(times_.heartbeat, [this] { beat(); });
}

FrameStream::~FrameStream() {
  if (!ended_) stream_->break_off(make_error(ErrorCode::Cancelled, "this end of the session was closed"));
}

void FrameStream::send(Bytes header, SharedBytes payload) {
  if (ended_) return;
  NS_CHECK(header.size() <= max_header_bytes);
  outgoing_.push_back({std::move(header), std::move(payload)});
  write_next();
}

void FrameStream::break_off(Error reason) {
  if (std::exchange(ended_, true)) return;
  timer_.reset();
  outgoing_.clear();
  stream_->break_off(std::move(reason));
}

void FrameStream::write_next() {
  if (writing_ || ended_ || outgoing_.empty()) return;
  Outgoing& next = outgoing_.front();
  const std::size_t size = next.payload == nullptr ? 0 : next.payload->size();
  Bytes message;
  if (!std::exchange(next.begun, true)) {
    message.reserve(prefix + next.header.size());
    append_le<std::uint32_t>(message, static_cast<std::uint32_t>(size));
    message.insert(message.end(), next.header.begin(), next.header.end());
  } else {
    const std::size_t count = std::min(payload_chunk, size - next.sent);
    const auto begin = next.payload->begin() + static_cast<std::ptrdiff_t>(next.sent);
    message.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    next.sent += count;
  }
  if (next.sent == size) outgoing_.pop_front();
  writing_ = true;
  last_sent_ = clock_.monotonic_now();
  stream_->write(std::move(message), [this, life = lifetime_.token()](Expected<void> written) {
    if (!life.alive() || ended_) return;
    writing_ = false;
    if (!written.ok()) return end(written.error());
    write_next();
  });
}

void FrameStream::read_next() {
  stream_->read([this, life = lifetime_.token()](Expected<std::optional<ByteChain>> read) {
    if (!life.alive() || ended_) return;
    if (!read.ok()) return end(read.error());
    if (!read->has_value())
      return end(make_error(ErrorCode::Unavailable, "the other node closed the stream"));
    last_heard_ = clock_.monotonic_now();
    take(**read);
    if (life.alive() && !ended_) read_next();
  });
}

void FrameStream::take(const ByteChain& message) {
  if (!in_payload_) {
    if (const auto begun = begin_frame(message); !begun.ok()) return end(begun.error());
  } else {
    if (message.size() > payload_size_ - payload_.size())
      return end(broke_the_rules("a payload is longer than its frame says"));
    const std::size_t at = payload_.size();
    payload_.resize(at + message.size());
    message.copy_to(payload_.data() + at);
  }
  if (payload_.size() == payload_size_) deliver();
}

Expected<void> FrameStream::begin_frame(const ByteChain& message) {
  if (message.size() <= prefix || message.size() > prefix + max_header_bytes)
    return broke_the_rules("a frame's header is too short or too long");
  const Bytes bytes = message.bytes();
  payload_size_ = load_le<std::uint32_t>(bytes.data());
  header_.assign(bytes.begin() + prefix, bytes.end());
  const auto expected = std::shared_ptr(events_)->admit(header_);
  if (!expected.ok()) return expected.error();
  if (*expected != payload_size_)
    return broke_the_rules("a payload has another size than its message demands");
  payload_.clear();
  payload_.reserve(payload_size_);
  in_payload_ = true;
  return {};
}

void FrameStream::deliver() {
  in_payload_ = false;
  if (header_ == alive_) return;
  const std::shared_ptr<Events> events = events_;
  events->received(std::move(header_), std::exchange(payload_, {}));
}

void FrameStream::beat() {
  const MonotonicTime now = clock_.monotonic_now();
  if (stream_->holds_read()) last_heard_ = now;
  if (now - last_heard_ > (in_payload_ ? times_.silence_in_payload : times_.silence))
    return end(make_error(ErrorCode::Timeout, "the other node said nothing for too long"));
  if (idle() && now - last_sent_ >= times_.heartbeat) send(alive_);
  timer_ = executor_.post_after(times_.heartbeat, [this] { beat(); });
}

void FrameStream::end(Error error) {
  if (std::exchange(ended_, true)) return;
  timer_.reset();
  outgoing_.clear();
  stream_->break_off(error);
  const std::shared_ptr<Events> events = events_;
  events->ended(std::move(error));
}

}  // namespace neuroshard::pipeline
