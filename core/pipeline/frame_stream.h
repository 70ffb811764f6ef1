// Messages with payloads over one net::PeerStream: in order, both ways, each payload in chunks. Knows when the other
// end is gone, as a break of the connection or as silence: an end that has nothing to say says Alive.
//
// A frame on the stream: payload size u32 and the header in one message, then the payload in chunks of at most
// payload_chunk. The payload's size is checked by the owner, and only then is memory taken for it. Between two chunks
// nothing else can be sent, and each may wait for its turn at the speed that a user allows.
//
// Memory: what was given to send() until it has left, and the one payload that arrives. The owner bounds the former
// by what it lets be under way. Threads: the executor's, all members and all calls back.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/net/peer_channel.h"

namespace neuroshard::pipeline {

using SharedBytes = std::shared_ptr<const Bytes>;

inline constexpr std::size_t payload_chunk = 64u << 10;

struct FrameTimes {
  Duration heartbeat = std::chrono::seconds(1);  // Alive after so long without a message of one's own
  // The other end is gone after so long without anything, and without a chunk of a payload that has begun. Reads that this
  // end postpones don't count.
  Duration silence = std::chrono::seconds(3), silence_in_payload = std::chrono::seconds(20);
  Duration ready = std::chrono::seconds(30);  // for each hop that is to follow a route (next_hop.h)
};

class FrameStream {
 public:
  // Each may destroy the stream.
  struct Events {
    // Whether this header may come now, and how large its payload must be. An error ends the stream.
    std::function<Expected<std::size_t>(ByteSpan header)> admit;
    std::function<void(Bytes header, Bytes payload)> received;
    // Once, last: the other end has gone, said nothing for too long, or broke the rules.
    std::function<void(Error)> ended;
  };
  // alive: the header that says that this end is here. clock and executor outlive it.
  FrameStream(std::shared_ptr<net::PeerStream> stream, Executor& executor, const Clock& clock,
              FrameTimes times, Bytes alive, Events events);
  ~FrameStream();  // breaks the stream off
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  void send(Bytes header, SharedBytes payload = nullptr);
  // Nothing more is sent or received, and ended() is not called.
  void break_off(Error reason);
  bool idle() const { return !writing_ && outgoing_.empty(); }  // nothing is on its way out
  std::size_t waiting() const { return outgoing_.size(); }      // messages that have not left

 private:
  struct Outgoing {
    Bytes header;
    SharedBytes payload;
    std::size_t sent = 0;  // bytes of the payload
    bool begun = false;
  };
  void write_next();
  void read_next();
  void take(const ByteChain& message);
  Expected<void> begin_frame(const ByteChain& message);
  void deliver();
  void beat();
  void end(Error error);

  std::shared_ptr<net::PeerStream> stream_;
  Executor& executor_;
  const Clock& clock_;
  const FrameTimes times_;
  const Bytes alive_;
  const std::shared_ptr<Events> events_;  // a call keeps it: the owner may destroy the stream in it
  std::deque<Outgoing> outgoing_;
  bool writing_ = false, ended_ = false;
  MonotonicTime last_sent_{}, last_heard_{};
  Bytes header_, payload_;  // of the frame that arrives
  std::size_t payload_size_ = 0;
  bool in_payload_ = false;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
