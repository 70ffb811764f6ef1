// SeedTopK: the largest tenth of all values, in the simplest format, for comparison: 32-bit places, all of
// them, then as many halves. Places rise and no half is 0, so a list of values has one payload.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/outer/detail/codec_bodies.h"

namespace neuroshard::outer::detail {
namespace {

constexpr std::size_t entry_bytes = 6;
constexpr std::uint32_t fp16_limit_bits = 0x477ff000;  // 65520, which rounds to infinity

std::uint64_t room_of(std::uint64_t count) {
  return std::max<std::uint64_t>(1, count / 10);
}

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & magnitude_mask;
}

struct Bound {
  std::uint32_t bits;
  std::uint64_t equal;  // how many values of this magnitude belong to the largest
};

// The bucket that the wanted-th largest is in, and how many are wanted of it.
Bound walk(const std::vector<std::uint32_t>& counts, std::uint64_t wanted) {
  std::size_t bucket = counts.size() - 1;
  while (bucket > 0 && counts[bucket] < wanted) wanted -= counts[bucket--];
  return {static_cast<std::uint32_t>(bucket), wanted};
}

// The `room`-th largest magnitude, by counting its upper 16 bits and then its lower 15.
Bound find_bound(Span<const float> values, std::uint64_t room) {
  std::vector<std::uint32_t> counts(1u << 16);
  for (const float value : values) ++counts[magnitude(value) >> 15];
  const Bound upper = walk(counts, room);
  std::fill(counts.begin(), counts.end(), 0);
  for (const float value : values) {
    const std::uint32_t bits = magnitude(value);
    if (bits >> 15 == upper.bits) ++counts[bits & 0x7fff];
  }
  const Bound lower = walk(counts, upper.equal);
  return {upper.bits << 15 | lower.bits, lower.equal};
}

class SeedTopKReader : public BodyReader {
 public:
  explicit SeedTopKReader(const OpenJob& job)
      : kernels_(job.kernels),
        count_(job.body.size() / entry_bytes),
        places_(job.body.data()),
        halves_(job.body.data() + 4 * count_) {}

  Expected<void> next(Span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0f);
    const std::uint64_t end = begin_ + out.size();
    for (; entry_ < count_; ++entry_) {
      const std::uint64_t place = load_le<std::uint32_t>(places_ + 4 * entry_);
      if (place < lowest_) return damaged(Codec::SeedTopK, "its places do not rise");
      if (place >= end) break;
      const std::uint16_t half = load_le<std::uint16_t>(halves_ + 2 * entry_) & 0x7fff;
      if (half == 0 || half >= 0x7c00) return damaged(Codec::SeedTopK, "a value is 0 or not finite");
      kernels_.from_fp16(halves_ + 2 * entry_, 1, 1.0f, &out[place - begin_]);
      lowest_ = place + 1;
    }
    begin_ = end;
    return {};
  }

  Expected<void> finish() override {
    if (entry_ != count_) return damaged(Codec::SeedTopK, "a place is beyond the last value");
    return {};
  }

 private:
  const CodecKernels& kernels_;
  std::size_t count_;
  const std::uint8_t* places_;
  const std::uint8_t* halves_;
  std::size_t entry_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t lowest_ = 0;  // the least that the next place may be
};

}  // namespace

std::uint64_t max_seed_top_k_body_bytes(std::uint64_t count) {
  return room_of(count) * entry_bytes;
}

Expected<void> encode_seed_top_k(const EncodeJob& job, Bytes& payload) {
  if (job.kernels.largest(job.values.data(), job.values.size()) >= fp16_limit_bits)
    return unsendable(Codec::SeedTopK);
  const std::uint64_t room = room_of(job.values.size());
  Bound bound = find_bound(job.values, room);
  Bytes places, halves;
  places.reserve(4 * room);
  halves.reserve(2 * room);
  for (std::size_t i = 0; i < job.values.size(); ++i) {
    const std::uint32_t bits = magnitude(job.values[i]);
    if (bits < bound.bits || (bits == bound.bits && bound.equal == 0)) continue;
    if (bits == bound.bits) --bound.equal;
    std::uint8_t half[2];
    job.kernels.to_fp16(&job.values[i], 1, 1.0f, half);
    if ((load_le<std::uint16_t>(half) & 0x7fff) == 0) continue;
    append_le(places, static_cast<std::uint32_t>(i));
    halves.insert(halves.end(), half, half + 2);
  }
  payload.insert(payload.end(), places.begin(), places.end());
  payload.insert(payload.end(), halves.begin(), halves.end());
  return {};
}

OpenedBody open_seed_top_k(const OpenJob& job) {
  if (job.body.size() % entry_bytes != 0)
    return damaged(Codec::SeedTopK, "its length does not fit whole values");
  return OpenedBody(std::make_unique<SeedTopKReader>(job));
}

}  // namespace neuroshard::outer::detail
