// The codecs again, as slowly and plainly as their formats are described: sorting instead of searching, one
// bit at a time, sums in long double. And the values that they are tested with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/rng.h"
#include "core/outer/codec.h"

namespace neuroshard::outer::oracle {

inline std::uint32_t crc32c(const Bytes& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

inline std::uint16_t half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude < std::ldexp(1.0, -14))
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(magnitude, 24))));
  const int exponent = std::ilogb(magnitude);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent))) - 1024;
  return static_cast<std::uint16_t>(sign | (((exponent + 15) << 10) + steps));
}

inline double largest(Span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::fabs(static_cast<double>(value)));
  return most;
}

inline void fp16_block(Span<const float> values, Bytes& out) {
  const double most = largest(values);
  int exponent = most > 0 ? std::ilogb(most) : -1000;
  if (most > 0 && std::nearbyint(std::ldexp(most, 10 - exponent)) == 2048) ++exponent;
  if (exponent < -64) {
    out.insert(out.end(), 1 + 2 * values.size(), 0);
    return;
  }
  out.push_back(static_cast<std::uint8_t>(exponent + 65));
  for (const float value : values)
    append_le(out, half(std::ldexp(static_cast<double>(value), 14 - exponent)));
}

inline void scaled_block(Span<const float> values, int top, Bytes& out) {
  const float quotient = static_cast<float>(largest(values)) / static_cast<float>(top);
  double scale = 0;
  if (quotient > 0) {
    const int exponent = std::ilogb(quotient);
    scale = std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(quotient), 7 - exponent)), exponent - 7);
  }
  const bool none = scale * top < std::ldexp(1.0, -64);
  const float narrow = none ? 0 : static_cast<float>(scale);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &narrow, 4);
  append_le(out, static_cast<std::uint16_t>(bits >> 16));
  std::vector<int> q;
  for (const float value : values)
    q.push_back(none ? 0 : static_cast<int>(std::nearbyint(value * (1.0f / narrow))));
  if (q.size() % 2 != 0) q.push_back(0);
  if (top == 127) {
    for (std::size_t i = 0; i < values.size(); ++i) out.push_back(static_cast<std::uint8_t>(q[i]));
  } else {
    for (std::size_t i = 0; i < q.size(); i += 2)
      out.push_back(static_cast<std::uint8_t>((q[i] & 15) + 16 * (q[i + 1] & 15)));
  }
}

// The places of the k largest magnitudes, rising; no zeros.
inline std::vector<std::size_t> largest_places(Span<const float> values, std::size_t k) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  places.resize(std::min(k, places.size()));
  std::sort(places.begin(), places.end());
  places.erase(std::remove_if(places.begin(), places.end(), [&](std::size_t p) { return values[p] == 0; }),
               places.end());
  return places;
}

class Bits {
 public:
  void put(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (used_ % 8 == 0) bytes_.push_back(0);
      if ((value >> i & 1) != 0) bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | 1u << used_ % 8);
      ++used_;
    }
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::size_t used_ = 0;
};

struct Chunk {
  std::vector<std::size_t> places;
  std::vector<float> values;
  int low = -100000, high = -100000;
  double threshold = HUGE_VAL;
};

inline int level(long double mean) {
  return mean > 0 ? static_cast<int>(std::floor(8 * std::log2(mean) + 0.5L)) : -100000;
}

inline Chunk chunk_of(Span<const float> values, std::size_t k) {
  Chunk chunk;
  chunk.places = largest_places(values, k);
  for (const std::size_t place : chunk.places) chunk.values.push_back(values[place]);
  if (chunk.values.empty()) return chunk;
  long double total = 0;
  for (const float value : chunk.values) total += std::fabs(static_cast<long double>(value));
  long double threshold = total / static_cast<long double>(chunk.values.size());
  chunk.low = chunk.high = level(threshold);
  for (int step = 0; step < 3; ++step) {
    long double sums[2] = {0, 0}, counts[2] = {0, 0};
    for (const float value : chunk.values) {
      const bool high = std::fabs(value) > static_cast<float>(threshold);
      sums[high] += std::fabs(static_cast<long double>(value));
      counts[high] += 1;
    }
    if (counts[0] == 0 || counts[1] == 0) break;
    const long double low = sums[0] / counts[0], high = sums[1] / counts[1];
    chunk.low = level(low), chunk.high = level(high);
    chunk.threshold = static_cast<double>(static_cast<float>(threshold));
    threshold = (low + high) / 2;
  }
  if (chunk.low == chunk.high) chunk.threshold = HUGE_VAL;
  return chunk;
}

inline void drop_below(Chunk& chunk, int lowest) {
  if (chunk.high < lowest) chunk = Chunk{};
  if (chunk.places.empty() || chunk.low >= lowest) return;
  Chunk kept;
  for (std::size_t i = 0; i < chunk.places.size(); ++i) {
    if (!(std::fabs(chunk.values[i]) > chunk.threshold)) continue;
    kept.places.push_back(chunk.places[i]);
    kept.values.push_back(chunk.values[i]);
  }
  kept.low = kept.high = chunk.high;
  chunk = kept;
}

inline void top_k_body(Span<const float> values, std::size_t k, Bytes& out) {
  std::vector<Chunk> chunks;
  std::vector<std::size_t> rooms;
  int top = -100000;
  for (std::size_t at = 0; at < values.size(); at += codec_chunk) {
    const std::size_t size = std::min(codec_chunk, values.size() - at);
    rooms.push_back((k * size + 4095) / 4096);
    chunks.push_back(chunk_of(values.subspan(at, size), rooms.back()));
    top = std::max(top, chunks.back().high);
  }
  const int base = top < -512 ? 0 : top - 255;
  unsigned r = 0;
  while ((k << (r + 1)) <= 4014) ++r;
  append_le(out, static_cast<std::int16_t>(base));
  Bits full, stream;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    Chunk& chunk = chunks[c];
    drop_below(chunk, std::max(base + 1, -512));
    const bool any = !chunk.places.empty(), is_full = any && chunk.places.size() == rooms[c];
    out.push_back(static_cast<std::uint8_t>(any ? chunk.low - base : 0));
    out.push_back(static_cast<std::uint8_t>(any ? chunk.high - base : 0));
    full.put(is_full, 1);
    if (any && !is_full) stream.put(chunk.places.size() - 1, 13);
    std::size_t next = 0;
    for (const std::size_t place : chunk.places) {
      for (std::size_t zeros = (place - next) >> r; zeros > 0; --zeros) stream.put(0, 1);
      stream.put(1, 1);
      stream.put(place - next, r);
      next = place + 1;
    }
    for (const float value : chunk.values) stream.put(std::signbit(value), 1);
    for (const float value : chunk.values) stream.put(std::fabs(value) > chunk.threshold, 1);
  }
  out.insert(out.end(), full.bytes().begin(), full.bytes().end());
  out.insert(out.end(), stream.bytes().begin(), stream.bytes().end());
}

inline void seed_body(Span<const float> values, Bytes& out) {
  Bytes halves;
  for (const std::size_t place : largest_places(values, std::max<std::size_t>(1, values.size() / 10))) {
    const std::uint16_t bits = half(values[place]);
    if ((bits & 0x7fff) == 0) continue;
    append_le(out, static_cast<std::uint32_t>(place));
    append_le(halves, bits);
  }
  out.insert(out.end(), halves.begin(), halves.end());
}

// The whole payload.
inline Bytes encode(const CodecOptions& options, Span<const float> values) {
  Bytes head{'N', 'S', 'D', 1, static_cast<std::uint8_t>(options.codec), 0};
  append_le(head, options.codec == Codec::TopK ? options.k : std::uint16_t{0});
  append_le(head, std::uint64_t{values.size()});
  Bytes body;
  const auto blocks = [&](std::size_t size, auto&& put) {
    for (std::size_t at = 0; at < values.size(); at += size)
      put(values.subspan(at, std::min(size, values.size() - at)));
  };
  switch (options.codec) {
    case Codec::Fp32: body.assign(as_bytes(values).begin(), as_bytes(values).end()); break;
    case Codec::Fp16: blocks(4096, [&](Span<const float> block) { fp16_block(block, body); }); break;
    case Codec::Int8: blocks(256, [&](Span<const float> block) { scaled_block(block, 127, body); }); break;
    case Codec::Int4: blocks(256, [&](Span<const float> block) { scaled_block(block, 7, body); }); break;
    case Codec::TopK: top_k_body(values, options.k, body); break;
    case Codec::SeedTopK: seed_body(values, body); break;
  }
  Bytes summed = head;
  summed.insert(summed.end(), body.begin(), body.end());
  append_le(head, crc32c(summed));
  head.insert(head.end(), body.begin(), body.end());
  return head;
}

// Kinds of values: what deltas look like, and what is hard.
inline const std::vector<std::string>& kinds() {
  static const std::vector<std::string> all{"normal", "heavy tails", "few levels", "sparse", "zeros",
                                            "wide",   "tiny",        "huge",       "one",    "clustered"};
  return all;
}
inline std::vector<float> sample(const std::string& kind, std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float normal = rng.normal();
    float& value = values[i];
    if (kind == "normal") value = normal * 1e-3f;
    if (kind == "heavy tails") value = normal * normal * normal * 1e-5f;
    if (kind == "few levels") value = static_cast<float>(static_cast<int>(rng.below(9)) - 4) * 0.25f;
    if (kind == "sparse") value = rng.below(500) == 0 ? normal : (rng.below(2) == 0 ? 0.0f : -0.0f);
    if (kind == "zeros") value = 0;
    if (kind == "wide") value = std::ldexp(normal, static_cast<int>(rng.below(200)) - 140);
    if (kind == "tiny") value = std::ldexp(normal, -66 - static_cast<int>(i / 1000));
    if (kind == "huge") value = std::ldexp(normal, 58);
    if (kind == "one") value = i == count / 2 ? -3.0f : 0.0f;
    if (kind == "clustered") value = i / 128 % 16 == 0 ? normal : normal * 1e-4f;
  }
  return values;
}

}  // namespace neuroshard::outer::oracle
