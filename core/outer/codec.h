// Delta codecs: how a slot's delta (anchor − local, fp32) travels in an outer round.
//
// A payload is a header and a body in chunks of codec_chunk values. The header: "NSD" and a version byte, the
// codec, a zero byte, k (16 bits), the number of values (64 bits), CRC-32C of all bytes but its own four (32
// bits). Each body is described in its file (detail/dense_codecs.cpp, top_k_codec.cpp, seed_top_k_codec.cpp).
// Payloads are canonical: of one list of decoded values there is exactly one payload of a codec, and decode()
// refuses everything else, so encode(decode(b)) == b for each b that it accepts. Decoded values are finite,
// of magnitude below codec_magnitude_limit and never subnormal (Fp32 apart), so the same bits come out on
// every processor, in whatever mode its floating point unit is.
//
//   codec      bytes per value   what is lost
//   Fp32       4                 nothing
//   Fp16       2.0002            11 significant bits, one exponent per chunk: small deltas lose nothing more
//   Int8       1.0078            q·scale, |q| ≤ 127, a 16-bit scale per 256 values
//   Int4       0.5078            q·scale, |q| ≤ 7, likewise
//   TopK       0.0193 (k = 64)   the k largest of each chunk, each as a sign and one of a chunk's two levels;
//                                the rest is 0. For use with ErrorFeedback (error_feedback.h). SparseLoCo,
//                                Sarfi et al. 2025
//   SeedTopK   0.6               the largest tenth of all values as fp16 with 32-bit places: for comparison
//
// Where magnitudes are equal, the lower place goes first.
//
// Threads: any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/outer/values.h"

namespace neuroshard::outer {

// The numbers are on the wire.
enum class Codec : std::uint8_t { Fp32 = 1, Fp16 = 2, Int8 = 3, Int4 = 4, TopK = 5, SeedTopK = 6 };
inline constexpr Codec all_codecs[] = {Codec::Fp32, Codec::Fp16, Codec::Int8,
                                       Codec::Int4, Codec::TopK, Codec::SeedTopK};

// "fp32", "fp16", "int8", "int4", "topk", "seed-topk".
std::string_view to_string(Codec codec);
// InvalidArgument: no such name; the message lists them.
Expected<Codec> codec_from_name(std::string_view name);

inline constexpr std::size_t codec_header_bytes = 20;
inline constexpr std::size_t codec_chunk = 4096;  // values
// 2^64. A delta beyond it comes from a diverged run or a Byzantine peer; sums of squares of such values would
// be next.
inline constexpr float codec_magnitude_limit = 18446744073709551616.0f;
// Of one payload: a row can be a whole model, with as many parameters as compute/shape_limits.h allows. The places
// of SeedTopK have 32 bits.
constexpr std::uint64_t max_values(Codec codec) {
  return codec == Codec::SeedTopK ? (std::uint64_t{1} << 32) - 1 : std::uint64_t{1} << 42;
}

struct CodecOptions {
  Codec codec = Codec::Int8;
  // TopK: values kept of each chunk, 1 to codec_chunk (of a last, shorter chunk the same share, rounded up).
  // Without meaning for the others.
  std::uint16_t k = 64;
};

// The most bytes that a canonical payload of `count` values has; exact for the dense codecs. A larger
// payload of a peer can be refused unread.  0: options or count out of range.
std::uint64_t max_payload_bytes(const CodecOptions& options, std::uint64_t count);

// values: [P] fp32.
// InvalidArgument: a value is not finite or not below codec_magnitude_limit (also after rounding; SeedTopK:
// beyond fp16), no values or too many, k out of range.
// Magnitudes below 2^-64 are sent as 0 by the lossy codecs.
// Cost: dense codecs and TopK read the values once, SeedTopK four times; TopK takes 6·k/4096 bytes of memory per
// value and its payload, the others some chunks.
// payload: room for max_payload_bytes(). Returns the payload's size.  Other errors: those of values and payload.
Expected<std::uint64_t> encode(const CodecOptions& options, const ValueSource& values, ByteSink& payload);
// The same in memory.
Expected<Bytes> encode(const CodecOptions& options, Span<const float> values);

// Reads a payload of one codec from start to end through buffers of some 64 KiB.
class DeltaReader {
 public:
  virtual ~DeltaReader() = default;
  // The next codec_chunk values, or what is left.  Corrupt: not canonical, or too short. Other errors are those
  // of the payload's source.
  virtual Expected<void> next(Span<float> out) = 0;
  // After the last value: what is only known then.  Corrupt.
  virtual Expected<void> finish() = 0;
};
// Reads the payload once for its length and checksum.  Corrupt: another codec, k or number of values, or damaged.
Expected<std::unique_ptr<DeltaReader>> open_delta(const CodecOptions& expected, ByteSourcePtr payload,
                                                  std::uint64_t count);

// False: nobody can decode the payload, or its source fails.  Cost: decodes it once, a chunk at a time.
bool is_readable(const CodecOptions& expected, const ByteSource& payload, std::uint64_t count);

// A payload's own description, before anything is decoded or its checksum is looked at.
struct CodecHeader {
  CodecOptions options;  // k is 0 unless TopK
  std::uint64_t count = 0;
};
// Corrupt: not a payload, or an unknown version, codec or k.
Expected<CodecHeader> read_codec_header(ByteSpan payload);

// Decodes into the caller's values, all of which are written. Their number is what both sides know (a slot's
// size), and a payload for another number is refused. Allocates buffers of at most some 64 KiB.
// Corrupt: wrong length, checksum, or not canonical; the values then hold rubbish.
Expected<void> decode(ByteSpan payload, Span<float> values);
// The same for a payload of one codec only (that of the network's profile); another codec or k is Corrupt.
Expected<void> decode(const CodecOptions& expected, ByteSpan payload, Span<float> values);

// Where values stand in a payload, for codecs in which that does not depend on the values: Fp32, Fp16, Int8, Int4.
// first and count: multiples of codec_chunk, but for a count that ends with the payload's last value.  Nothing: another
// codec.
struct PayloadPart {
  std::uint64_t begin = 0, size = 0;
};
std::optional<PayloadPart> payload_part(const CodecOptions& options, std::uint64_t first,
                                        std::uint64_t count);
// Decodes such a part alone; no checksum covers it. Corrupt: not canonical, or another length. Unsupported: another codec.
Expected<void> decode_part(const CodecOptions& options, ByteSpan part, Span<float> values);

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes` after those that gave `before`.
std::uint32_t crc32c(ByteSpan bytes, std::uint32_t before = 0);

}  // namespace neuroshard::outer
