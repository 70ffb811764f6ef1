// Frames between the processes of a cut model, over the byte streams of core/platform/socket/stream_socket.h.
//
// A frame is a header of 32 bytes and a payload. Header, little-endian: magic "NSPF" (u32), kind (u32),
// number of the micro-batch (u64), length of the payload (u64), check (u64: the three before it, mixed). A
// length over the channel's limit, an unknown kind or a wrong check ends the connection before anything is
// allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/platform/socket/stream_socket.h"

namespace neuroshard::app {

enum class FrameKind : std::uint32_t {
  Setup,   // driver to worker: its connections (JSON)
  Block,   // driver to worker: its part of the model
  Ready,   // worker to driver: the answer to Setup, Block and Flood
  Data,    // values of one micro-batch
  Flood,   // driver to worker, to measure the connection: is read and dropped
  Finish,  // driver to worker: no more micro-batches
  Failed,  // worker to driver: why the worker ends (text), with the ErrorCode as its number
};

inline constexpr std::size_t frame_header_bytes = 32;
// Of frames that carry text.
inline constexpr std::uint64_t max_text_frame = 1u << 16;

struct Frame {
  FrameKind kind = FrameKind::Data;
  std::uint64_t batch = 0;
  Bytes payload;  // starts at an address that is a multiple of 16
};

// One end of a connection. Never blocks by itself.  Threads: one at a time that reads, one that writes.
class FrameChannel {
 public:
  FrameChannel(platform::StreamSocket socket, std::uint64_t limit)
      : socket_(std::move(socket)), limit_(limit) {}

  const platform::StreamSocket& socket() const { return socket_; }
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }

  // Reads what is there; true once a whole frame is at hand.  Errors: Unavailable (the other end is closed),
  // Corrupt (not a frame), Exhausted (longer than the limit).
  Expected<bool> read();
  bool has_frame() const { return whole_; }
  const Frame& frame() const { return frame_; }
  // Makes room for the next frame; the payload's memory is used again.
  void drop_frame();
  // The same, and the payload is the caller's.
  Bytes take_payload();
  // The same; the next frame goes into `memory`.
  void swap_payload(Bytes& memory);

  // Starts a frame. The payload must stay until sending() is false.
  void put(FrameKind kind, std::uint64_t batch, ByteSpan payload);
  bool sending() const { return sent_ < frame_header_bytes + payload_.size() && sent_ != idle; }
  // Writes what fits.
  Expected<void> write();

 private:
  static constexpr std::size_t idle = SIZE_MAX;
  Expected<void> begin_payload();

  platform::StreamSocket socket_;
  std::uint64_t limit_;
  std::uint8_t head_in_[frame_header_bytes] = {};
  std::uint8_t head_out_[frame_header_bytes] = {};
  std::size_t received_ = 0;  // of header and payload
  bool whole_ = false;
  Frame frame_;
  ByteSpan payload_;
  std::size_t sent_ = idle;
};

}  // namespace neuroshard::app
