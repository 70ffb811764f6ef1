// Writes a payload from its start to its end: gathers the body in a buffer, and puts the header in front when
// the checksum over everything is known.
#pragma once

#include <cstdint>
#include <memory>

#include "core/outer/codec.h"
#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {

// Threads: one.
class PayloadWriter {
 public:
  static constexpr std::size_t most = 64 * 1024;

  // head: the header without its checksum. The sink stays the caller's.
  PayloadWriter(const CodecKernels& kernels, ByteSpan head, ByteSink& sink);

  // Room for the next `bytes` (≤ most) of the body, to be filled before the next call.
  // Errors: those of the sink, of all three.
  Expected<std::uint8_t*> room(std::size_t bytes);
  Expected<void> put(ByteSpan bytes);
  // The payload's size.
  Expected<std::uint64_t> finish();

 private:
  Expected<void> flush();

  const CodecKernels& kernels_;
  ByteSink& sink_;
  std::uint8_t header_[codec_header_bytes];
  std::uint32_t checksum_;
  std::uint64_t written_ = codec_header_bytes;  // the place of the buffer's first byte
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::size_t held_ = 0;
};

}  // namespace neuroshard::outer::detail
