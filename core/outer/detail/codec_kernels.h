// The loops of the delta codecs, one table per instruction set, chosen once at start. All tables give the
// same bits: every value is a function of its own inputs by single IEEE operations, and the one sum has fixed
// lanes.
//
// Only C headers here: a table is compiled with a wider instruction set, and an inline function of the
// standard library that the linker picked from it would not run on older machines.
//
// Bytes are at any alignment; numbers in them are little-endian.
#pragma once

#include <stddef.h>  // NOLINT: see above
#include <stdint.h>  // NOLINT

namespace neuroshard::outer::detail {

constexpr uint32_t magnitude_mask = 0x7fffffff;
constexpr size_t select_values = 4096;  // codec_chunk

// Magnitudes up to a threshold and above it.
struct MagnitudeSides {
  double low_sum;
  double high_sum;
  uint32_t high_count;
};

struct CodecKernels {
  const char* name;

  // CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes` after those that gave `crc`; 0 to begin.
  uint32_t (*crc32c)(uint32_t crc, const uint8_t* bytes, size_t count);

  // The largest magnitude as the bits of a float; infinity and NaN are larger than all numbers.
  uint32_t (*largest)(const float* values, size_t count);

  // Half precision of value·scale, nearest even; |value·scale| < 65520.
  void (*to_fp16)(const float* values, size_t count, float scale, uint8_t* out);
  // Exact times scale.
  void (*from_fp16)(const uint8_t* in, size_t count, float scale, float* out);
  // The largest magnitude as the bits of a half.
  uint32_t (*largest_fp16)(const uint8_t* in, size_t count);

  // q = value·inverse, nearest even; |value·inverse| < 127.5 for 8 bits, < 7.5 for 4. Two of 4 bits share a
  // byte, the lower place in the lower bits; the last upper half of an odd count is 0.
  void (*quantise8)(const float* values, size_t count, float inverse, uint8_t* out);
  void (*quantise4)(const float* values, size_t count, float inverse, uint8_t* out);
  // out = q·scale. Returns the largest |q|, which is 128 (8) where a q is the one that has no opposite.
  uint32_t (*dequantise8)(const uint8_t* in, size_t count, float scale, float* out);
  uint32_t (*dequantise4)(const uint8_t* in, size_t count, float scale, float* out);

  // The k largest magnitudes of values[select_values], 1 ≤ k ≤ select_values; where equal, the lower places.
  // Writes their places, rising, and their values; zeros are left out. Returns how many there are, at most
  // k. largest: the largest magnitude as bits; when it is infinity or more, the rest of the answer is of no
  // use. hint: a guess that each call leaves for the next; 0 to begin. Changes nothing but the time taken.
  uint32_t (*select)(const float* values, uint32_t k, uint16_t* places, float* selected, uint32_t* largest,
                     uint32_t* hint);

  // Sums of magnitudes on either side of threshold ≥ 0: value i in lane i % 8, then lanes l and l + 4, l and
  // l + 2, l and l + 1 together.
  void (*split)(const float* values, size_t count, float threshold, MagnitudeSides* sides);
};

extern const CodecKernels codec_kernels_portable;
#if defined(__x86_64__)
extern const CodecKernels codec_kernels_avx2;
#endif

// Whether this processor has what codec_kernels_avx2 needs.
bool has_codec_kernels_avx2();
// The best table that this processor has.
const CodecKernels& best_codec_kernels();

}  // namespace neuroshard::outer::detail
