// Changes valid messages at random: what a fuzzer sends instead of what an honest program writes. The same
// seed makes the same changes.
#pragma once

#include "core/base/bytes.h"
#include "core/base/rng.h"

namespace neuroshard::test {

// Threads: one. rng outlives it.
class Mutator {
 public:
  explicit Mutator(Rng& rng) : rng_(rng) {}

  // One to four changes. other: a valid message whose parts may be spliced in; may be empty.
  Bytes mutate(Bytes message, ByteSpan other);
  // Values on which a reader's arithmetic goes wrong: 0, 1, the largest ones, neighbours of powers of two, or
  // a neighbour of `near`.
  std::uint64_t odd_number(std::uint64_t near);
  Rng& rng() { return rng_; }
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }

 private:
  void change_once(Bytes& bytes, ByteSpan other);
  void flip_bit(Bytes& bytes);
  // A little-endian field of 1, 2, 4 or 8 bytes, such as a length or a count.
  void change_field(Bytes& bytes);
  void cut(Bytes& bytes);
  void repeat_part(Bytes& bytes);
  void splice(Bytes& bytes, ByteSpan other);

  Rng& rng_;
};

}  // namespace neuroshard::test
