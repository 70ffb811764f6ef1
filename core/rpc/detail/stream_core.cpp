#include "core/rpc/detail/stream_core.h"

#include "core/base/check.h"
#include "core/rpc/detail/wire.h"

namespace neuroshard::rpc::detail {

void StreamCore::write(Bytes message, net::PeerStream::Written done) {
  NS_CHECK(!own_last_ && !message.empty());
  if (message.size() > net::max_message_bytes) {
    return shared_->mailbox->put([done = std::move(done)] {
      done(make_error(ErrorCode::InvalidArgument, "a message of a stream has at most 4 MiB"));
    });
  }
  if (end_) return shared_->mailbox->put([done = std::move(done), end = *end_] { done(end); });
  NS_CHECK(!has_room_);
  has_room_ = std::move(done);
  send(data_chunk(std::move(message)), nullptr);
  if (!has_room_ || unsent_ > ahead_bytes) return;
  // Later, like all notifications.
  shared_->mailbox->put([self = shared_from_this()] {
    if (self->unsent_ > ahead_bytes) return;  // notified before, and used up
    if (const auto told = std::exchange(self->has_room_, nullptr)) told({});
  });
}

void StreamCore::send(grpc::ByteBuffer buffer, net::PeerStream::Written done) {
  if (end_) {
    if (done) shared_->mailbox->put([done = std::move(done), end = *end_] { done(end); });
    return;
  }
  const std::size_t size = buffer.Length();
  unsent_ += size;
  out_.push_back({std::move(buffer), size, std::move(done)});
  pump();
}

void StreamCore::finish() {
  if (own_last_) return;
  own_last_ = true;
  wire::Chunk chunk;
  chunk.set_last(true);
  send(to_buffer(chunk), [self = shared_from_this()](Expected<void> sent) {
    self->own_last_sent_ = sent.ok();
    self->check_finished();
  });
}

void StreamCore::read(net::PeerStream::Read done) {
  NS_CHECK(!reader_);
  if (end_) return shared_->mailbox->put([done = std::move(done), end = *end_] { done(end); });
  reader_ = std::move(done);
  read_since_ = shared_->now();
  if (ready_ || peer_last_)
    shared_->mailbox->put([self = shared_from_this()] { self->deliver(); });
  else
    begin_reading(*read_since_);
}

// Gives a read message to the waiting user, and reads the next one.
void StreamCore::deliver() {
  if (!reader_ || end_ || (!ready_ && !peer_last_)) return;
  const auto reader = std::exchange(reader_, nullptr);
  read_since_.reset();
  std::optional<ByteChain> message = std::exchange(ready_, std::nullopt);
  if (!peer_last_ && !reading_) {
    reading_ = true;
    start_read(&in_);
  }
  reader(std::move(message));
}

void StreamCore::begin_reading(MonotonicTime now) {
  read_since_ = now;
  if (reading_ || end_) return;
  reading_ = true;
  start_read(&in_);
}

void StreamCore::pump() {
  if (writing_ || out_.empty() || end_) return;
  writing_ = true;
  write_since_ = shared_->now();
  current_ = std::move(out_.front());
  out_.pop_front();
  start_write(&current_.buffer);
}

void StreamCore::write_done(bool ok) {
  writing_ = false;
  write_since_.reset();
  current_.buffer.Clear();
  unsent_ -= std::exchange(current_.size, 0);
  if (!ok || end_) return;  // ended() follows, with the reason
  const auto done = std::exchange(current_.done, nullptr);
  pump();
  if (done) done({});
  // At once: a wake-up for each message costs a bulk writer more than the message.
  if (has_room_ && unsent_ <= ahead_bytes && !end_) std::exchange(has_room_, nullptr)({});
}

void StreamCore::read_done(bool ok) {
  reading_ = false;
  if (end_ || !ok) return;  // ended() comes, and knows why
  grpc::ByteBuffer message;
  message.Swap(&in_);
  if (message.Length() > net::max_message_bytes + message_overhead) {
    oversized();
    return break_off(make_error(ErrorCode::Exhausted, "a message of the stream is larger than it may be"));
  }
  arrived(message.Length());
  // While a large message is copied, the next one is already read.
  if (reader_ && !awaits_method_ && message.Length() >= large_bytes) {
    reading_ = true;
    start_read(&in_);
  }
  auto chunk = read_chunk(&message);
  message.Clear();
  if (!chunk) {
    malformed();
    return break_off(make_error(ErrorCode::Corrupt, "a message of the stream can't be read"));
  }
  if (awaits_method_) {
    awaits_method_ = false;
    read_since_.reset();
    return opened(chunk->method);
  }
  if (finished_ || peer_last_) return;  // messages after the last are ignored
  if (chunk->last)
    peer_last_ = true;
  else
    ready_ = std::move(chunk->data);
  deliver();
  if (peer_last_) check_finished();
}

void StreamCore::check_finished() {
  if (finished_ || end_ || !own_last_sent_ || !peer_last_) return;
  finished_ = true;
  both_finished();
}

void StreamCore::ended(const Error& reason) {
  if (!end_) end_ = reason;
  read_since_.reset();
  write_since_.reset();
  const auto self = shared_from_this();  // the callbacks may release it
  const Error end = *end_;
  const auto reader = std::exchange(reader_, nullptr);
  const auto writer = std::exchange(current_.done, nullptr);
  const auto waiting = std::exchange(out_, {});
  const auto room = std::exchange(has_room_, nullptr);
  ready_.reset();
  if (reader) reader(end);
  if (room) room(end);
  if (writer) writer(end);
  for (const Outgoing& outgoing : waiting)
    if (outgoing.done) outgoing.done(end);
}

void StreamCore::break_off(Error reason) {
  if (end_ || finished_) return;
  close(reason);
  end_ = make_error(ErrorCode::Cancelled, std::move(reason.message));
  // Later, not from within the aborting call.
  shared_->mailbox->put([self = shared_from_this()] { self->ended(*self->end_); });
}

void StreamCore::release() {
  if (!own_last_ || !peer_last_)
    break_off(make_error(ErrorCode::Cancelled, "the other node gave the stream up"));
}

void StreamCore::check(MonotonicTime now) {
  const auto late = [&](const std::optional<MonotonicTime>& since) {
    return since && patience_ != Duration::max() && now - *since > patience_;
  };
  if (end_ || (!late(read_since_) && !late(write_since_))) return;
  const Error reason = make_error(ErrorCode::Timeout, "nothing moved on the stream for too long");
  if (!finished_) shared_->count(net::Refusal::TooSlow);
  close(reason);
  end_ = reason;
  shared_->mailbox->put([self = shared_from_this()] { self->ended(*self->end_); });
}

void StreamCore::stop() {
  if (end_) return;
  end_ = make_error(ErrorCode::Cancelled, "this node stops");
  close(*end_);
}

StreamHandle::~StreamHandle() {
  core_->release();
}

}  // namespace neuroshard::rpc::detail
