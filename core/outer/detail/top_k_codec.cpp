// TopK: of each chunk the k largest values, as places, signs and one of a chunk's two levels. The body, where
// a level n is 2^(n/8) (top_k_levels.h):
//
//   base        int16           levels are base + code
//   codes       2 bytes a chunk lower and higher level, 1 to 255; 0 and 0 of a chunk without values
//   full        1 bit a chunk   whether it has all the values that its size allows; lowest bit first, rest 0
//   a bit stream, chunk by chunk:
//     number - 1  13 bits       unless full or without values
//     gaps        Rice          place minus the place before minus 1
//     signs       1 bit a value 1: negative
//     levels      1 bit a value 1: the higher; all 0 where there is one level (its two codes are equal)
//   zeros to the end of the last byte
//
// One payload per list of values: the largest code is 255 (else base is 0 and there are no codes), codes of a
// chunk rise or are equal, both levels of two occur, and a chunk is marked full exactly if it is. Gaps of
// random places cost 7.53 bits at k 64 of 4096, the floor being log2 C(4096,64)/64 = 7.36; no places cost
// more than 8.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/outer/detail/bit_stream.h"
#include "core/outer/detail/codec_bodies.h"
#include "core/outer/detail/top_k_levels.h"
#include "core/outer/detail/value_parts.h"

namespace neuroshard::outer::detail {
namespace {

constexpr std::size_t base_bytes = 2;
constexpr std::uint64_t codes_at = codec_header_bytes + base_bytes;
constexpr std::size_t writer_slack = 8;  // of a BitWriter
constexpr unsigned number_bits = 13;
constexpr int top_code = 255;

std::uint64_t chunks_of(std::uint64_t count) {
  return (count + codec_chunk - 1) / codec_chunk;
}

// How many values a chunk of `size` keeps: k, or the same share of a shorter one, rounded up.
std::size_t room_of(std::uint16_t k, std::size_t size) {
  return (k * size + codec_chunk - 1) / codec_chunk;
}

// About log2 of ln 2 times the mean gap, where Rice numbers of geometric gaps are shortest.
unsigned rice_of(std::uint16_t k) {
  constexpr std::uint32_t reach = 4014;  // 4096 · ln 2 · √2
  unsigned r = 0;
  while ((std::uint32_t{k} << (r + 1)) <= reach) ++r;
  return r;
}

// Upper bound of a chunk's bits.
std::uint64_t max_chunk_bits(std::uint16_t k, std::size_t size) {
  const std::uint64_t room = room_of(k, size);
  return number_bits + room * (rice_of(k) + 3) + (size >> rice_of(k));
}

// ---- encoding

// The selected values of all chunks, one after another.
struct Selection {
  std::vector<std::uint16_t> places;
  std::vector<float> values;
  std::vector<std::uint16_t> counts;  // per chunk
  std::vector<TwoLevels> levels;
};

Expected<Selection> select_all(const EncodeJob& job) {
  const auto chunks = static_cast<std::size_t>(chunks_of(job.values.count));
  Selection result;
  result.places.resize(chunks * job.options.k);
  result.values.resize(chunks * job.options.k);
  result.counts.resize(chunks);
  result.levels.resize(chunks);
  std::size_t found = 0;
  std::uint32_t hint = 0;
  std::vector<float> padded;
  NS_RETURN_IF_ERROR(
      each_chunk(job.values, [&](std::uint64_t first, Span<const float> values) -> Expected<void> {
        const auto chunk = static_cast<std::size_t>(first / codec_chunk);
        const std::size_t size = values.size();
        if (size < codec_chunk) {
          padded.assign(codec_chunk, 0.0f);
          std::copy(values.begin(), values.end(), padded.begin());
          values = padded;
        }
        std::uint32_t largest = 0;
        const std::uint32_t count =
            job.kernels.select(values.data(), static_cast<std::uint32_t>(room_of(job.options.k, size)),
                               result.places.data() + found, result.values.data() + found, &largest, &hint);
        if (largest >= magnitude_limit_bits) return unsendable(Codec::TopK);
        if (count > 0) result.levels[chunk] = two_levels(job.kernels, {result.values.data() + found, count});
        result.counts[chunk] = static_cast<std::uint16_t>(count);
        found += count;
        return {};
      }));
  return result;
}

struct ChunkEntries {
  Span<const std::uint16_t> places;
  Span<const float> values;
};

void put_bits(BitWriter& out, Span<const float> values, bool (*bit)(float value, float threshold),
              float threshold) {
  constexpr std::size_t group = 32;
  for (std::size_t i = 0; i < values.size(); i += group) {
    const std::size_t size = std::min(group, values.size() - i);
    std::uint64_t bits = 0;
    for (std::size_t j = 0; j < size; ++j) bits |= std::uint64_t{bit(values[i + j], threshold)} << j;
    out.put(bits, static_cast<unsigned>(size));
  }
}

void put_chunk(BitWriter& out, const ChunkEntries& entries, bool full, unsigned r, float threshold) {
  if (!full) out.put(entries.places.size() - 1, number_bits);
  std::uint32_t next = 0;
  for (const std::uint16_t place : entries.places) {
    out.put_rice(place - next, r);
    next = place + 1u;
  }
  put_bits(
      out, entries.values, [](float value, float) { return std::signbit(value); }, 0);
  put_bits(
      out, entries.values, [](float value, float bound) { return std::fabs(value) > bound; }, threshold);
}

// Levels below `lowest` are not sent. Drops a chunk's values of the lower level, moving the others forward.
std::size_t drop_low(std::uint16_t* places, float* values, std::size_t count, float threshold) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(std::fabs(values[i]) > threshold)) continue;
    places[kept] = places[i];
    values[kept++] = values[i];
  }
  return kept;
}

}  // namespace

std::uint64_t max_top_k_body_bytes(std::uint16_t k, std::uint64_t count) {
  const std::uint64_t chunks = chunks_of(count);
  const std::size_t rest = count % codec_chunk;
  std::uint64_t bits = count / codec_chunk * max_chunk_bits(k, codec_chunk);
  if (rest != 0) bits += max_chunk_bits(k, rest);
  return base_bytes + 2 * chunks + (chunks + 7) / 8 + (bits + 7) / 8;
}

Expected<void> encode_top_k(const EncodeJob& job) {
  NS_ASSIGN_OR_RETURN(Selection selection, select_all(job));
  const std::size_t chunks = selection.counts.size();
  int top = no_level;
  for (const TwoLevels& levels : selection.levels) top = std::max(top, levels.high);
  if (top > highest_level) return unsendable(Codec::TopK);
  const bool empty = top < lowest_level;
  const int base = empty ? 0 : top - top_code;
  const int lowest = std::max(base + 1, lowest_level);

  // The three parts grow side by side: the body, a fiftieth of the values at k 64, is made in memory.
  Bytes body(static_cast<std::size_t>(max_top_k_body_bytes(job.options.k, job.values.count)) + writer_slack);
  std::uint8_t* codes = body.data() + base_bytes;
  std::uint8_t* full_bits = codes + 2 * chunks;
  store_le(body.data(), static_cast<std::int16_t>(base));
  BitWriter out(full_bits + (chunks + 7) / 8);
  const unsigned r = rice_of(job.options.k);
  std::uint16_t* places = selection.places.data();
  float* values = selection.values.data();
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t selected = selection.counts[chunk];
    TwoLevels levels = selection.levels[chunk];
    std::size_t count = levels.high < lowest ? 0 : selected;
    if (count > 0 && levels.low < lowest) {
      count = drop_low(places, values, count, levels.threshold);
      levels = {levels.high, levels.high, std::numeric_limits<float>::infinity()};
    }
    if (count > 0) {
      const auto size = static_cast<std::size_t>(
          std::min<std::uint64_t>(codec_chunk, job.values.count - chunk * codec_chunk));
      const bool full = count == room_of(job.options.k, size);
      codes[2 * chunk] = static_cast<std::uint8_t>(levels.low - base);
      codes[2 * chunk + 1] = static_cast<std::uint8_t>(levels.high - base);
      full_bits[chunk / 8] = static_cast<std::uint8_t>(full_bits[chunk / 8] | unsigned{full} << chunk % 8);
      put_chunk(out, {{places, count}, {values, count}}, full, r, levels.threshold);
    }
    places += selected;
    values += selected;
  }
  const std::size_t bytes =
      static_cast<std::size_t>(full_bits - body.data()) + (chunks + 7) / 8 + out.finish();
  return job.payload.put({body.data(), bytes});
}

namespace {

// ---- decoding

class TopKReader : public DeltaReader {
 public:
  TopKReader(const OpenJob& job, int base)
      : k_(job.options.k),
        r_(rice_of(k_)),
        chunks_(chunks_of(job.count)),
        base_(base),
        codes_(job.payload, codes_at, 2 * chunks_),
        full_(job.payload, codes_at + codes_.size(), (chunks_ + 7) / 8),
        bits_(ByteWindow(job.payload, codes_at + codes_.size() + full_.size(),
                         job.payload->size() - codes_at - codes_.size() - full_.size())) {}

  Expected<void> next(Span<float> out) override {
    const char* const wrong = read(out);
    if (const Error* const error = source_error()) return *error;
    if (wrong != nullptr) return damaged(Codec::TopK, wrong);
    ++chunk_;
    return {};
  }

  Expected<void> finish() override {
    const char* const wrong = wrong_at_end();
    if (const Error* const error = source_error()) return *error;
    if (wrong != nullptr) return damaged(Codec::TopK, wrong);
    return {};
  }

 private:
  static constexpr const char* unread = "it can't be read";  // goes behind the source's own error

  // Of these three; null: none so far.
  const Error* source_error() const {
    for (const Error* const error : {codes_.error(), full_.error(), bits_.error()})
      if (error != nullptr) return error;
    return nullptr;
  }

  // These three: a description of the fault, or null.
  const char* wrong_at_end() {
    if (largest_code_ != (any_ ? top_code : 0) || (!any_ && base_ != 0))
      return "its base level is not the one that belongs to its values";
    if (chunks_ % 8 != 0) {
      const std::uint8_t* const last = full_.at(full_.size() - 1, 1);
      if (last == nullptr) return unread;
      if (*last >> chunks_ % 8 != 0) return "unused bits are set";
    }
    return bits_.ends_here() ? nullptr : "its length does not fit its values";
  }

  const char* read(Span<float> out) {
    std::fill(out.begin(), out.end(), 0.0f);
    const std::uint8_t* const codes = codes_.at(2 * chunk_, 2);
    const std::uint8_t* const eight = full_.at(chunk_ / 8, 1);
    if (codes == nullptr || eight == nullptr) return unread;
    const int low = codes[0], high = codes[1];
    const bool full = (*eight >> chunk_ % 8 & 1) != 0;
    if (high == 0) return low == 0 && !full ? nullptr : "a chunk without a level has values";
    if (low == 0 || low > high || base_ + low < lowest_level || base_ + high > highest_level)
      return "a level is out of range";
    any_ = true;
    largest_code_ = std::max(largest_code_, high);
    const std::size_t room = room_of(k_, out.size());
    const std::size_t count = full ? room : bits_.take(number_bits) + 1;
    if (!full && count >= room) return "a chunk has more values than it may, or is full and not marked so";
    return read_values(out, count, low, high);
  }

  const char* read_values(Span<float> out, std::size_t count, int low, int high) {
    std::uint32_t place = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t room = static_cast<std::uint32_t>(out.size()) - place;
      const std::uint32_t gap = bits_.take_rice(r_, room);
      if (gap >= room) return "a place is beyond its chunk";
      place += gap;
      places_[i] = static_cast<std::uint16_t>(place++);
    }
    read_bits(negative_, count);
    read_bits(higher_, count);
    if (bits_.past_end()) return "it ends too soon";
    const float levels[2] = {level_value(base_ + low), level_value(base_ + high)};
    const float signed_levels[4] = {levels[0], -levels[0], levels[1], -levels[1]};
    std::size_t highs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t which = (negative_[i / 32] >> i % 32 & 1) | (higher_[i / 32] >> i % 32 & 1) << 1;
      highs += which >> 1;
      out[places_[i]] = signed_levels[which];
    }
    const bool levels_fit = low == high ? highs == 0 : highs > 0 && highs < count;
    return levels_fit ? nullptr : "a level does not occur among the values";
  }

  void read_bits(std::uint32_t* words, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32)
      words[i / 32] =
          static_cast<std::uint32_t>(bits_.take(static_cast<unsigned>(std::min<std::size_t>(32, count - i))));
  }

  std::uint16_t k_;
  unsigned r_;
  std::uint64_t chunks_;
  int base_;
  ByteWindow codes_, full_;
  BitReader bits_;
  std::uint64_t chunk_ = 0;
  bool any_ = false;
  int largest_code_ = 0;
  std::uint16_t places_[codec_chunk];
  std::uint32_t negative_[codec_chunk / 32], higher_[codec_chunk / 32];
};

}  // namespace

OpenedBody open_top_k(const OpenJob& job) {
  const std::uint64_t chunks = chunks_of(job.count);
  if (job.body_bytes() < base_bytes + 2 * chunks + (chunks + 7) / 8)
    return damaged(Codec::TopK, "it ends too soon");
  std::uint8_t base[base_bytes];
  NS_RETURN_IF_ERROR(job.payload->read_at(codec_header_bytes, base));
  return OpenedBody(std::make_unique<TopKReader>(job, load_le<std::int16_t>(base)));
}

}  // namespace neuroshard::outer::detail
