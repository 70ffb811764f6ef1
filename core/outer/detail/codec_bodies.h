// The parts of the codecs behind codec.h: one encoder and one reader of bodies per codec, and both ends with
// the table of kernels chosen by the caller (tests force each).
#pragma once

#include <memory>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/outer/codec.h"
#include "core/outer/detail/codec_kernels.h"
#include "core/outer/detail/payload_writer.h"

namespace neuroshard::outer::detail {

// As the functions of codec.h.
Expected<std::uint64_t> encode_with(const CodecKernels& kernels, const CodecOptions& options,
                                    const ValueSource& values, ByteSink& payload);
Expected<Bytes> encode_with(const CodecKernels& kernels, const CodecOptions& options,
                            Span<const float> values);
Expected<void> decode_with(const CodecKernels& kernels, ByteSpan payload, Span<float> values);

// InvalidArgument: nothing can be encoded with these options, or not so many values.
Expected<void> check_encodable(const CodecOptions& options, std::uint64_t count);

// ---- per codec: appends the body to a payload; opens it

struct EncodeJob {
  const CodecKernels& kernels;
  CodecOptions options;
  const ValueSource& values;
  PayloadWriter& payload;
};
// A payload whose header and checksum hold.
struct OpenJob {
  const CodecKernels& kernels;
  CodecOptions options;
  std::uint64_t count = 0;
  ByteSourcePtr payload;
  std::uint64_t body_bytes() const { return payload->size() - codec_header_bytes; }
};
using OpenedBody = Expected<std::unique_ptr<DeltaReader>>;

// Dense codecs: Fp32, Fp16, Int8, Int4. The exact length of their bodies.
std::uint64_t dense_body_bytes(Codec codec, std::uint64_t count);
Expected<void> encode_dense(const EncodeJob& job);
OpenedBody open_dense(const OpenJob& job);

// The most bytes of a canonical body.
std::uint64_t max_top_k_body_bytes(std::uint16_t k, std::uint64_t count);
Expected<void> encode_top_k(const EncodeJob& job);
OpenedBody open_top_k(const OpenJob& job);

std::uint64_t max_seed_top_k_body_bytes(std::uint64_t count);
Expected<void> encode_seed_top_k(const EncodeJob& job);
OpenedBody open_seed_top_k(const OpenJob& job);

// ---- what they share

constexpr std::uint32_t magnitude_limit_bits = 0x5f800000;  // 2^64
constexpr std::uint32_t smallest_sent_bits = 0x1f800000;    // 2^-64

// "A delta payload of codec int8 is damaged: <what>." as Corrupt.
Error damaged(Codec codec, std::string_view what);
// The error for a value that no payload of the codec can hold.
Error unsendable(Codec codec);

}  // namespace neuroshard::outer::detail
