#include "core/net/local_stream.h"

#include <array>
#include <deque>
#include <optional>

#include "core/base/check.h"
#include "core/net/mailbox.h"

namespace neuroshard::net {
namespace {

using Written = PeerStream::Written;
using Read = PeerStream::Read;

// Both ends share it; each writes into its own way and reads from the other one.
class Pipe {
 public:
  explicit Pipe(Executor& executor) : mailbox_(std::make_shared<Mailbox>(executor)) {}

  void write(int end, Bytes message, Written done) {
    if (broken_) return post_written(std::move(done), error_at(end));
    if (message.empty() || message.size() > max_message_bytes)
      return post_written(std::move(done), make_error(ErrorCode::InvalidArgument,
                                                      "a message of a stream has 1 byte to 4 MiB"));
    Way& way = ways_[end];
    NS_CHECK(!way.written && !way.finished);
    way.bytes += message.size();
    way.messages.push_back(std::move(message));
    way.written = std::move(done);
    move(way);
  }
  void finish(int end) {
    if (broken_) return;
    ways_[end].finished = true;
    move(ways_[end]);
  }
  void read(int end, Read done) {
    Way& way = ways_[1 - end];
    NS_CHECK(!way.reader);
    if (broken_) return post_read(std::move(done), error_at(end));
    way.reader = std::move(done);
    move(way);
  }
  void break_off(int end, Error reason) {
    if (broken_) return;
    broken_ = Break{end, std::move(reason)};
    for (int writer = 0; writer < 2; ++writer) {
      Way& way = ways_[writer];
      way.messages.clear();
      if (auto written = std::exchange(way.written, nullptr))
        post_written(std::move(written), error_at(writer));
      if (auto reader = std::exchange(way.reader, nullptr))
        post_read(std::move(reader), error_at(1 - writer));
    }
  }
  // An end has been destroyed: fine when both have finished and all was read.
  void release(int end) {
    const auto over = [](const Way& way) { return way.finished && way.messages.empty(); };
    if (!over(ways_[0]) || !over(ways_[1]))
      break_off(end, make_error(ErrorCode::Cancelled, "the other end gave the stream up"));
  }

 private:
  struct Way {
    std::deque<Bytes> messages;
    std::size_t bytes = 0;
    Written written;  // waits for room
    Read reader;
    bool finished = false;
  };

  struct Break {
    int by = 0;
    Error reason;
  };

  Error error_at(int end) const {
    return end == broken_->by ? make_error(ErrorCode::Cancelled, "this end broke the stream off")
                              : broken_->reason;
  }
  void move(Way& way) {
    if (way.reader && !way.messages.empty()) {
      Bytes message = std::move(way.messages.front());
      way.messages.pop_front();
      way.bytes -= message.size();
      post_read(std::exchange(way.reader, nullptr), std::optional(ByteChain(std::move(message))));
    } else if (way.reader && way.finished) {
      post_read(std::exchange(way.reader, nullptr), std::optional<ByteChain>());
    }
    if (way.written && way.bytes <= local_stream_bytes) post_written(std::exchange(way.written, nullptr), {});
  }
  void post_written(Written done, Expected<void> result) {
    mailbox_->put([done = std::move(done), result = std::move(result)] { done(result); });
  }
  void post_read(Read done, Expected<std::optional<ByteChain>> result) {
    mailbox_->put([done = std::move(done), result = std::move(result)] { done(result); });
  }

  const std::shared_ptr<Mailbox> mailbox_;
  std::array<Way, 2> ways_;
  std::optional<Break> broken_;
};

class LocalStream final : public PeerStream {
 public:
  LocalStream(std::shared_ptr<Pipe> pipe, int end) : pipe_(std::move(pipe)), end_(end) {}
  ~LocalStream() override { pipe_->release(end_); }
  void write(Bytes message, Written done) override {
    pipe_->write(end_, std::move(message), std::move(done));
  }
  void finish() override { pipe_->finish(end_); }
  void read(Read done) override { pipe_->read(end_, std::move(done)); }
  void break_off(Error reason) override { pipe_->break_off(end_, std::move(reason)); }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const int end_;
};

}  // namespace

std::pair<std::shared_ptr<PeerStream>, std::shared_ptr<PeerStream>> make_local_stream(Executor& executor) {
  const auto pipe = std::make_shared<Pipe>(executor);
  return {std::make_shared<LocalStream>(pipe, 0), std::make_shared<LocalStream>(pipe, 1)};
}

}  // namespace neuroshard::net
