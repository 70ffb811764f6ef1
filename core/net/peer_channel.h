// Connections to peers over gRPC with mutual TLS (core/rpc) or over the simulated network (core/sim).
// Protocols use this interface, and one contract test covers both implementations. Each end has proven its
// key, and the hellos have been exchanged and agree, before any other message.
//
// Sizes: a message has at most 4 MiB; a longer one is refused before it is stored. Tensors and files go
// through streams in chunks of 256 KiB.
// Time: a call has a deadline that grows with its size; a stream has none but must make progress.
// Threads: all members and all callbacks on the executor that the transport was made with. A callback is
// called exactly once, later, never from within the member that takes it; none is called after the transport
// is destroyed.
// Errors, as codes: Timeout (nothing in time) · Unavailable (not reached, broken) · Denied (certificate, id,
// ban, network) · Unsupported (version, method) · Exhausted (a limit, here or there) · Cancelled · and the
// answering node's own errors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/byte_chain.h"
#include "core/net/hello.h"
#include "core/net/peer_caller.h"

namespace neuroshard::net {

inline constexpr std::size_t chunk_bytes = 256u << 10;
inline constexpr std::size_t max_message_bytes = 4u << 20;
inline constexpr std::size_t max_error_text = 300;  // of another node's error; the rest is cut off

inline constexpr Duration least_deadline = std::chrono::milliseconds(200);
inline constexpr Duration connect_deadline = std::chrono::seconds(5);
inline constexpr Duration stream_patience = std::chrono::seconds(10);

// How long a call may take: the caller's allowance for the work and the latency, at least 200 ms, and the
// time for the bytes of both directions at 1 Mbit/s, which every line has.
Duration call_deadline(Duration allowed, std::size_t request_bytes, std::size_t answer_bytes);

// One stream of messages in both directions; the same at both ends. At most one read and one write are in
// progress at a time (more is a bug). Destroying it before both ends have finished breaks it off.
class PeerStream {
 public:
  using Written = std::function<void(Expected<void>)>;
  // The message lies where the connection has put it; keeping it keeps that memory.
  using Read = std::function<void(Expected<std::optional<ByteChain>>)>;
  virtual ~PeerStream() = default;
  // 1 … max_message_bytes. `done` when there is room for the next: a slow reader slows the writer down.
  virtual void write(Bytes message, Written done) = 0;
  // No more writes follow. Not while a write is in progress.
  virtual void finish() = 0;
  // The next message, or nothing when the other end has finished.
  virtual void read(Read done) = 0;
  // This node itself postpones the read that is in progress: the other end may have sent long ago.
  virtual bool holds_read() const { return false; }
  // Both ends' reads and writes fail from now on, the own ones with Cancelled. The reason reaches the other
  // end if the answering end breaks off.
  virtual void break_off(Error reason) = 0;
};

// An open connection, or one that has broken: calls on a broken one connect again or end with Unavailable.
class PeerChannel {
 public:
  virtual ~PeerChannel() = default;                 // its calls and streams end with Cancelled
  virtual const NodeId& id() const = 0;             // proven
  virtual const Hello& hello() const = 0;           // the peer's
  virtual platform::Endpoint endpoint() const = 0;  // that was dialled
  // deadline: from call_deadline().
  virtual void call(Method method, Bytes request, Duration deadline, CallDone done) = 0;
  // patience: how long a read or a write may wait without progress; Duration::max() = for ever.
  virtual std::shared_ptr<PeerStream> open(Method method, Duration patience) = 0;
};

// Answers peers.  Threads: the executor's.
class PeerService {
 public:
  virtual ~PeerService() = default;
  // Answer at once or later, exactly once; a `respond` that is destroyed unused answers Internal.
  virtual void on_call(const Caller& from, Method method, Bytes request, Respond respond) = 0;
  virtual void on_stream(const Caller& from, Method method, std::shared_ptr<PeerStream> stream) = 0;
};

struct Dial {
  platform::Endpoint endpoint;
  std::optional<NodeId> id;  // must answer there; nothing: any node may (trackers and bootstrap lists)
};

class PeerTransport {
 public:
  using Connected = std::function<void(Expected<std::shared_ptr<PeerChannel>>)>;
  virtual ~PeerTransport() = default;
  virtual void connect(const Dial& to, Duration deadline, Connected done) = 0;
  // Used in hellos from now on.
  virtual void set_hello(Hello hello) = 0;
  virtual const Hello& hello() const = 0;
};

}  // namespace neuroshard::net
