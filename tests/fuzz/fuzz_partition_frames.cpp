// Frames between the processes of a cut model: the first byte says in what pieces the rest arrives. A frame
// that is read stays under the limit and, written again, is the same bytes.
#include <algorithm>
#include <cstring>

#include "app/node/commands/partition/partition_frames.h"
#include "core/base/check.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::app;  // NOLINT

namespace {

constexpr std::uint64_t limit = 1000;
constexpr std::size_t most_bytes = 1 << 12;  // four of the largest frames; fits the socket's buffer

// The bytes of a frame as a channel sends them.
Bytes written(const Frame& frame) {
  auto ends = platform::StreamSocket::pair();
  NS_CHECK(ends.ok());
  FrameChannel channel(std::move(ends->first), limit);
  channel.put(frame.kind, frame.batch, frame.payload);
  NS_CHECK(channel.write().ok() && !channel.sending());
  Bytes bytes(frame_header_bytes + frame.payload.size());
  const auto count = ends->second.read_some(bytes);
  NS_CHECK(count.ok() && *count == bytes.size());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan all{data + 1, std::min(size - 1, most_bytes)};
  const std::size_t piece = std::size_t{data[0]} + 1;
  auto ends = platform::StreamSocket::pair();
  NS_CHECK(ends.ok());
  FrameChannel channel(std::move(ends->second), limit);
  std::size_t sent = 0, taken = 0;
  while (sent < all.size()) {
    const auto count = ends->first.write_some(all.subspan(sent, std::min(piece, all.size() - sent)));
    NS_CHECK(count.ok() && *count > 0);
    sent += *count;
    while (true) {
      const auto whole = channel.read();
      if (!whole.ok()) return 0;
      if (!*whole) break;
      NS_CHECK(channel.frame().payload.size() <= limit);
      const Bytes again = written(channel.frame());
      NS_CHECK(taken + again.size() <= sent &&
               std::memcmp(again.data(), all.data() + taken, again.size()) == 0);
      taken += again.size();
      channel.drop_frame();
    }
    NS_CHECK(sent - taken <= frame_header_bytes + limit);
  }
  return 0;
}
