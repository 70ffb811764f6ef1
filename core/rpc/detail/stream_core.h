// One end of a stream over gRPC; both ends differ only in how they begin and end. gRPC's reactions come on
// its threads and go through the mailbox; all state belongs to the executor. A last message announces the
// end, so a broken connection is never taken for an end. Some messages may wait to leave while the user makes
// the next one, and one is read ahead: otherwise each message would wait for the way between gRPC's threads
// and the executor.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <deque>
#include <memory>
#include <optional>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

class StreamCore : public Sweepable, public std::enable_shared_from_this<StreamCore> {
 public:
  StreamCore(std::shared_ptr<Shared> shared, Duration patience)
      : shared_(std::move(shared)), patience_(patience) {}

  // The user's side.
  void write(Bytes message, net::PeerStream::Written done);
  void finish();
  void read(net::PeerStream::Read done);
  void break_off(Error reason);
  // The user has released the stream: aborted, unless both ends have finished.
  void release();

  void check(MonotonicTime now) override;
  void stop() override;

 protected:
  // gRPC's operations. read_done / write_done answers each start.
  virtual void start_read(grpc::ByteBuffer* buffer) = 0;
  virtual void start_write(const grpc::ByteBuffer* buffer) = 0;
  virtual void close(const Error& reason) = 0;  // at once; pending reads and writes fail
  virtual void both_finished() = 0;             // regular end
  // After the first message at the answering end.
  virtual void opened(std::uint32_t /*method*/) {}

  // A message of so many bytes arrived.
  virtual void arrived(std::size_t /*bytes*/) {}
  // A message arrived that can't be read.
  virtual void malformed() { shared_->count(net::Refusal::Malformed); }

  virtual void oversized() { shared_->count(net::Refusal::TooLarge); }

  // Reactions, put into the executor by the derived class. A read may be one that the user does not wait for.
  void read_done(bool ok);
  void write_done(bool ok);
  void ended(const Error& reason);

  void send(grpc::ByteBuffer buffer, net::PeerStream::Written done);
  void begin_reading(MonotonicTime now);
  bool over() const { return end_.has_value(); }

  const std::shared_ptr<Shared> shared_;
  Duration patience_;           // for a read or a write that does not move
  bool awaits_method_ = false;  // at the answering end

 private:
  static constexpr std::size_t ahead_bytes = 1u << 20;   // unsent before the user has to wait
  static constexpr std::size_t large_bytes = 16u << 10;  // never a stream's last message, which is empty
  struct Outgoing {
    grpc::ByteBuffer buffer;
    std::size_t size = 0;
    net::PeerStream::Written done;
  };
  void pump();
  void deliver();
  void check_finished();

  grpc::ByteBuffer in_;
  bool reading_ = false;
  std::deque<Outgoing> out_;
  Outgoing current_;  // gRPC reads it while writing_
  bool writing_ = false;
  std::size_t unsent_ = 0;             // bytes of out_ and current_
  net::PeerStream::Written has_room_;  // of the user's latest write, until there is room
  std::optional<ByteChain> ready_;     // read ahead
  net::PeerStream::Read reader_;
  std::optional<MonotonicTime> read_since_, write_since_;
  bool own_last_ = false, own_last_sent_ = false, peer_last_ = false, finished_ = false;
  std::optional<Error> end_;
};

// The user's handle.
class StreamHandle final : public net::PeerStream {
 public:
  explicit StreamHandle(std::shared_ptr<StreamCore> core) : core_(std::move(core)) {}
  ~StreamHandle() override;
  void write(Bytes message, Written done) override { core_->write(std::move(message), std::move(done)); }
  void finish() override { core_->finish(); }
  void read(Read done) override { core_->read(std::move(done)); }
  void break_off(Error reason) override { core_->break_off(std::move(reason)); }

 private:
  std::shared_ptr<StreamCore> core_;
};

}  // namespace neuroshard::rpc::detail
