// Error feedback (SparseLoCo, Sarfi et al. 2025, Algorithm 1): what a codec leaves out of one round's delta
// is added to the next.
//
//   e ← beta·e + delta;   send Q(e);   e ← e − Q(e)
//
// A contribution that did not get into the round's set is put back by roll_back(), as if it had never been
// sent. The buffer is part of a checkpoint.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/outer/codec.h"

namespace neuroshard::outer {

class ErrorFeedback {
 public:
  // A buffer of `count` zeros; 0 ≤ beta ≤ 1 (0 turns it off: nothing is carried over). 4 bytes per value.
  ErrorFeedback(std::size_t count, float beta);

  // The payload to send for this round's delta [count]; the buffer is afterwards what it leaves out. Each
  // value of payload and buffer together is beta·e + delta up to rounding in its last place.
  // InvalidArgument as encode(), or delta of another size; the buffer is then unchanged.
  Expected<Bytes> encode(const CodecOptions& options, Span<const float> delta);

  // Adds what a payload of this buffer's encode() carried back to the buffer.
  // Corrupt: not such a payload; the buffer is then unchanged.
  Expected<void> roll_back(ByteSpan payload);

  // For checkpoints. restore: InvalidArgument for another size or values that are not finite; nothing changes
  // then.
  Span<const float> buffer() const { return {buffer_.data(), buffer_.size()}; }
  Expected<void> restore(Span<const float> buffer);

  float beta() const { return beta_; }

 private:
  float beta_;
  std::vector<float> buffer_;
};

}  // namespace neuroshard::outer
