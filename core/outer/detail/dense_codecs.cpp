// Fp32, Fp16, Int8, Int4: every value travels. A body is a row of blocks, each a scale and its values:
//
//   Fp32   no scale; 4 bytes a value
//   Fp16   blocks of 4096: a byte e+65, then halves. The largest is in [2^14, 2^15), times 2^(e-14)
//   Int8   blocks of 256: the upper 16 bits of a float, then a byte a value. The largest |q| is 127
//   Int4   blocks of 256: likewise, then 4 bits a value. The largest |q| is 7
//
// A scale of 0 says that all values of the block are 0. A scale is the 16-bit float that is nearest to the
// largest magnitude / 127 (or 7): it is at most 1/256 off, so the largest value becomes 127 (or 7) and no
// other, and from the decoded values the same scale comes out again.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/outer/detail/byte_window.h"
#include "core/outer/detail/codec_bodies.h"
#include "core/outer/detail/value_parts.h"

namespace neuroshard::outer::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads hold little-endian floats as they are");

constexpr std::size_t small_block = 256;
constexpr int fp16_exponent_bias = 65;

struct Layout {
  std::size_t block;        // values
  std::size_t scale_bytes;  // in front of a block
  std::size_t bits;         // of a value
  std::uint64_t bytes_of(std::uint64_t values) const { return scale_bytes + (values * bits + 7) / 8; }
};

Layout layout_of(Codec codec) {
  switch (codec) {
    case Codec::Fp16: return {codec_chunk, 1, 16};
    case Codec::Int8: return {small_block, 2, 8};
    case Codec::Int4: return {small_block, 2, 4};
    default: return {codec_chunk, 0, 32};
  }
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
}

// Nearest even to the upper 16 bits of a positive float.
std::uint16_t upper_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float from_upper_half(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

class DenseEncoder {
 public:
  explicit DenseEncoder(const EncodeJob& job) : job_(job), kernels_(job.kernels) {}

  // False: a value can't be sent.
  bool put(Span<const float> values, std::uint8_t* out) const {
    const std::uint32_t largest = kernels_.largest(values.data(), values.size());
    if (largest >= magnitude_limit_bits) return false;
    switch (job_.options.codec) {
      case Codec::Fp16: return put_fp16(values, largest, out);
      case Codec::Int8: return put_scaled(values, largest, 127, kernels_.quantise8, out);
      case Codec::Int4: return put_scaled(values, largest, 7, kernels_.quantise4, out);
      default: std::memcpy(out, values.data(), values.size_bytes()); return true;
    }
  }

 private:
  bool put_fp16(Span<const float> values, std::uint32_t largest, std::uint8_t* out) const {
    // The exponent that the largest value has once it is rounded to 11 bits.
    const std::uint32_t rounded = largest + 0xfff + (largest >> 13 & 1);
    const int exponent = static_cast<int>(rounded >> 23) - 127;
    if (rounded >= magnitude_limit_bits) return false;
    if (rounded < smallest_sent_bits) {
      std::memset(out, 0, 1 + 2 * values.size());
      return true;
    }
    out[0] = static_cast<std::uint8_t>(exponent + fp16_exponent_bias);
    kernels_.to_fp16(values.data(), values.size(), power_of_two(14 - exponent), out + 1);
    return true;
  }

  bool put_scaled(Span<const float> values, std::uint32_t largest, int top,
                  void (*quantise)(const float*, std::size_t, float, std::uint8_t*),
                  std::uint8_t* out) const {
    const float steps = static_cast<float>(top);
    const std::uint16_t scale_bits = upper_half(std::bit_cast<float>(largest) / steps);
    const float scale = from_upper_half(scale_bits);
    const std::uint32_t decoded = std::bit_cast<std::uint32_t>(scale * steps);
    if (decoded >= magnitude_limit_bits) return false;
    if (decoded < smallest_sent_bits) {
      std::memset(out, 0, layout_of(job_.options.codec).bytes_of(values.size()));
      return true;
    }
    store_le(out, scale_bits);
    quantise(values.data(), values.size(), 1.0f / scale, out + 2);
    return true;
  }

  const EncodeJob& job_;
  const CodecKernels& kernels_;
};

class DenseReader : public DeltaReader {
 public:
  explicit DenseReader(const OpenJob& job)
      : kernels_(job.kernels),
        codec_(job.options.codec),
        layout_(layout_of(codec_)),
        body_(job.payload, codec_header_bytes, job.body_bytes()) {}

  Expected<void> next(Span<float> out) override {
    const auto bytes = static_cast<std::size_t>(dense_body_bytes(codec_, out.size()));
    at_ = body_.at(taken_, bytes);
    if (at_ == nullptr) return *body_.error();
    taken_ += bytes;
    while (!out.empty()) {
      const Span<float> block = out.first(std::min(layout_.block, out.size()));
      if (const char* wrong = read(block)) return damaged(codec_, wrong);
      at_ += layout_.bytes_of(block.size());
      out = out.subspan(block.size());
    }
    return {};
  }
  Expected<void> finish() override { return {}; }

 private:
  // A description of the fault, or null.
  const char* read(Span<float> out) const {
    switch (codec_) {
      case Codec::Fp16: return read_fp16(out);
      case Codec::Int8: return read_scaled(out, 127, kernels_.dequantise8);
      case Codec::Int4: return read_scaled(out, 7, kernels_.dequantise4);
      default: break;
    }
    std::memcpy(out.data(), at_, out.size_bytes());
    return kernels_.largest(out.data(), out.size()) < magnitude_limit_bits ? nullptr
                                                                           : "a value is out of range";
  }

  const char* read_zeros(Span<float> out, std::size_t scale_bytes) const {
    const std::uint8_t* end = at_ + layout_.bytes_of(out.size());
    if (!std::all_of(at_ + scale_bytes, end, [](std::uint8_t byte) { return byte == 0; }))
      return "a block without a scale has values";
    std::fill(out.begin(), out.end(), 0.0f);
    return nullptr;
  }

  const char* read_fp16(Span<float> out) const {
    if (at_[0] == 0) return read_zeros(out, 1);
    const int exponent = at_[0] - fp16_exponent_bias;
    if (exponent > 63) return "an exponent is out of range";
    const std::uint32_t largest = kernels_.largest_fp16(at_ + 1, out.size());
    if (largest >> 10 != 14 + 15) return "an exponent does not fit the values of its block";
    kernels_.from_fp16(at_ + 1, out.size(), power_of_two(exponent - 14), out.data());
    return nullptr;
  }

  const char* read_scaled(Span<float> out, int top,
                          std::uint32_t (*dequantise)(const std::uint8_t*, std::size_t, float,
                                                      float*)) const {
    const std::uint16_t scale_bits = load_le<std::uint16_t>(at_);
    if (scale_bits == 0) return read_zeros(out, 2);
    const float scale = from_upper_half(scale_bits);
    // A negative or unbounded scale has larger bits than the limit; one below the smallest float, smaller
    // ones.
    const std::uint32_t decoded = std::bit_cast<std::uint32_t>(scale * static_cast<float>(top));
    if (scale_bits >= magnitude_limit_bits >> 16 || decoded >= magnitude_limit_bits ||
        decoded < smallest_sent_bits)
      return "a scale is out of range";
    if (dequantise(at_ + 2, out.size(), scale, out.data()) != static_cast<std::uint32_t>(top))
      return "a scale does not fit the values of its block";
    const bool odd_nibble = layout_.bits == 4 && out.size() % 2 != 0;
    if (odd_nibble && at_[layout_.bytes_of(out.size()) - 1] >> 4 != 0) return "unused bits are set";
    return nullptr;
  }

  const CodecKernels& kernels_;
  Codec codec_;
  Layout layout_;
  ByteWindow body_;  // whose length was checked
  std::uint64_t taken_ = 0;
  const std::uint8_t* at_ = nullptr;  // the next block
};

}  // namespace

std::uint64_t dense_body_bytes(Codec codec, std::uint64_t count) {
  const Layout layout = layout_of(codec);
  const std::uint64_t rest = count % layout.block;
  return count / layout.block * layout.bytes_of(layout.block) + (rest == 0 ? 0 : layout.bytes_of(rest));
}

Expected<void> encode_dense(const EncodeJob& job) {
  const Layout layout = layout_of(job.options.codec);
  const DenseEncoder encoder(job);
  return each_chunk(job.values, [&](std::uint64_t, Span<const float> chunk) -> Expected<void> {
    NS_ASSIGN_OR_RETURN(
        std::uint8_t * at,
        job.payload.room(static_cast<std::size_t>(dense_body_bytes(job.options.codec, chunk.size()))));
    while (!chunk.empty()) {
      const Span<const float> block = chunk.first(std::min(layout.block, chunk.size()));
      if (!encoder.put(block, at)) return unsendable(job.options.codec);
      at += layout.bytes_of(block.size());
      chunk = chunk.subspan(block.size());
    }
    return {};
  });
}

OpenedBody open_dense(const OpenJob& job) {
  if (job.body_bytes() != dense_body_bytes(job.options.codec, job.count))
    return damaged(job.options.codec, "its length does not fit its number of values");
  return OpenedBody(std::make_unique<DenseReader>(job));
}

}  // namespace neuroshard::outer::detail
