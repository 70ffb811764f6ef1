// SeedTopK: the largest tenth of all values, in the simplest format, for comparison: 32-bit places, all of
// them, then as many halves. Places rise and no half is 0, so a list of values has one payload.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/outer/detail/byte_window.h"
#include "core/outer/detail/codec_bodies.h"
#include "core/outer/detail/value_parts.h"

namespace neuroshard::outer::detail {
namespace {

constexpr std::size_t place_bytes = 4, half_bytes = 2, entry_bytes = place_bytes + half_bytes;
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
Expected<Bound> find_bound(const EncodeJob& job, std::uint64_t room) {
  std::vector<std::uint32_t> counts(1u << 16);
  NS_RETURN_IF_ERROR(each_chunk(job.values, [&](std::uint64_t, Span<const float> chunk) -> Expected<void> {
    if (job.kernels.largest(chunk.data(), chunk.size()) >= fp16_limit_bits)
      return unsendable(Codec::SeedTopK);
    for (const float value : chunk) ++counts[magnitude(value) >> 15];
    return {};
  }));
  const Bound upper = walk(counts, room);
  std::fill(counts.begin(), counts.end(), 0);
  NS_RETURN_IF_ERROR(each_chunk(job.values, [&](std::uint64_t, Span<const float> chunk) -> Expected<void> {
    for (const float value : chunk) {
      const std::uint32_t bits = magnitude(value);
      if (bits >> 15 == upper.bits) ++counts[bits & 0x7fff];
    }
    return {};
  }));
  const Bound lower = walk(counts, upper.equal);
  return Bound{upper.bits << 15 | lower.bits, lower.equal};
}

// put(places, halves) as bytes, of the values of each chunk that are sent, in order.
template <class Put>
Expected<void> each_entry(const EncodeJob& job, Bound bound, Put put) {
  Bytes places(place_bytes * codec_chunk), halves(half_bytes * codec_chunk);
  return each_chunk(job.values, [&](std::uint64_t first, Span<const float> chunk) -> Expected<void> {
    std::size_t entries = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const std::uint32_t bits = magnitude(chunk[i]);
      if (bits < bound.bits || (bits == bound.bits && bound.equal == 0)) continue;
      if (bits == bound.bits) --bound.equal;
      std::uint8_t* const half = halves.data() + half_bytes * entries;
      job.kernels.to_fp16(&chunk[i], 1, 1.0f, half);
      if ((load_le<std::uint16_t>(half) & 0x7fff) == 0) continue;
      store_le(places.data() + place_bytes * entries++, static_cast<std::uint32_t>(first + i));
    }
    return put(ByteSpan(places).first(place_bytes * entries), ByteSpan(halves).first(half_bytes * entries));
  });
}

class SeedTopKReader : public DeltaReader {
 public:
  explicit SeedTopKReader(const OpenJob& job)
      : kernels_(job.kernels),
        count_(job.body_bytes() / entry_bytes),
        places_(job.payload, codec_header_bytes, place_bytes * count_),
        halves_(job.payload, codec_header_bytes + place_bytes * count_, half_bytes * count_) {}

  Expected<void> next(Span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0f);
    const std::uint64_t end = begin_ + out.size();
    for (; entry_ < count_; ++entry_) {
      const std::uint8_t* const at = places_.at(place_bytes * entry_, place_bytes);
      if (at == nullptr) return *places_.error();
      const std::uint64_t place = load_le<std::uint32_t>(at);
      if (place < lowest_) return damaged(Codec::SeedTopK, "its places do not rise");
      if (place >= end) break;
      const std::uint8_t* const value = halves_.at(half_bytes * entry_, half_bytes);
      if (value == nullptr) return *halves_.error();
      const std::uint16_t half = load_le<std::uint16_t>(value) & 0x7fff;
      if (half == 0 || half >= 0x7c00) return damaged(Codec::SeedTopK, "a value is 0 or not finite");
      kernels_.from_fp16(value, 1, 1.0f, &out[static_cast<std::size_t>(place - begin_)]);
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
  std::uint64_t count_;
  ByteWindow places_, halves_;
  std::uint64_t entry_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t lowest_ = 0;  // the least that the next place may be
};

}  // namespace

std::uint64_t max_seed_top_k_body_bytes(std::uint64_t count) {
  return room_of(count) * entry_bytes;
}

// The halves are behind all places: two passes write one after the other, so that neither stands in memory.
Expected<void> encode_seed_top_k(const EncodeJob& job) {
  const std::uint64_t room = room_of(job.values.count);
  const auto changed = [] {
    return make_error(ErrorCode::Corrupt, "The values of a delta changed while it was encoded.");
  };
  NS_ASSIGN_OR_RETURN(const Bound bound, find_bound(job, room));
  std::uint64_t entries = 0, written = 0;
  NS_RETURN_IF_ERROR(each_entry(job, bound, [&](ByteSpan places, ByteSpan) -> Expected<void> {
    entries += places.size() / place_bytes;
    if (entries > room) return changed();
    return job.payload.put(places);
  }));
  NS_RETURN_IF_ERROR(each_entry(job, bound, [&](ByteSpan, ByteSpan halves) -> Expected<void> {
    written += halves.size() / half_bytes;
    if (written > entries) return changed();
    return job.payload.put(halves);
  }));
  if (written != entries) return changed();
  return {};
}

OpenedBody open_seed_top_k(const OpenJob& job) {
  if (job.body_bytes() % entry_bytes != 0)
    return damaged(Codec::SeedTopK, "its length does not fit whole values");
  return OpenedBody(std::make_unique<SeedTopKReader>(job));
}

}  // namespace neuroshard::outer::detail
