// Error feedback (SparseLoCo, Sarfi et al. 2025, Algorithm 1): what a codec leaves out of one round's delta
// is added to the next.
//
//   e ← beta·e + delta;   send Q(e);   e ← e − Q(e)
//
// A contribution that did not get into the round's set is put back by roll_back(), as if it had never been
// sent. The buffer, 4 bytes a value, is in a spool and not in memory.
//
// Threads: one at a time.
#pragma once

#include "core/base/spool.h"
#include "core/outer/codec.h"

namespace neuroshard::outer {

class ErrorFeedback {
 public:
  // A buffer of `count` zeros; 0 ≤ beta ≤ 1 (0 turns it off: nothing is carried over). The spool outlives it.
  ErrorFeedback(std::uint64_t count, float beta, Spool& spool);

  // The payload to send for this round's delta [count], which is read as often as encode() reads it and once
  // more; the buffer is afterwards what the payload leaves out. Each value of payload and buffer together is
  // beta·e + delta up to rounding in its last place.  InvalidArgument as encode(), or delta of another size.
  // Other errors: those of delta and spool. After an error the buffer is unchanged.
  Expected<ByteSourcePtr> encode(const CodecOptions& options, const ValueSource& delta);

  // Adds what a payload of this buffer's encode() carried back to the buffer.
  // Corrupt: not such a payload. After an error the buffer is unchanged.
  Expected<void> roll_back(const CodecOptions& options, const ByteSourcePtr& payload);

  // fp32, little-endian; null: all zeros. restore: keeps the source.  InvalidArgument for another size or values
  // that are not finite, and errors of the source; nothing changes then.
  const ByteSourcePtr& buffer() const { return buffer_; }
  Expected<void> restore(ByteSourcePtr buffer);

  float beta() const { return beta_; }

 private:
  ValueSource kept() const;

  std::uint64_t count_;
  float beta_;
  Spool* spool_;
  ByteSourcePtr buffer_;
};

}  // namespace neuroshard::outer
