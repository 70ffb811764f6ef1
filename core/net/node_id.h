// Node ids and the distance between them: Kademlia's XOR metric (Maymounkov, Mazières 2002). A node's id is
// the SHA-256 of its public key (crypto::node_id), so choosing an id means searching for a key.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/bytes.h"

namespace neuroshard::net {

using NodeId = Hash256;

namespace detail {
inline std::uint64_t big_endian_word(const NodeId& id, int word) {
  std::uint64_t value = 0;
  std::memcpy(&value, id.data() + 8 * word, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}
}  // namespace detail

// Whether `a` is closer to `target` than `b`.
inline bool closer(const NodeId& target, const NodeId& a, const NodeId& b) {
  for (int word = 0; word < 4; ++word) {
    const std::uint64_t t = detail::big_endian_word(target, word);
    const std::uint64_t x = detail::big_endian_word(a, word) ^ t;
    const std::uint64_t y = detail::big_endian_word(b, word) ^ t;
    if (x != y) return x < y;
  }
  return false;
}

// The number of leading bits that both share, 0 … 256.
inline int shared_bits(const NodeId& a, const NodeId& b) {
  for (int word = 0; word < 4; ++word) {
    const std::uint64_t x = detail::big_endian_word(a, word) ^ detail::big_endian_word(b, word);
    if (x != 0) return 64 * word + std::countl_zero(x);
  }
  return 256;
}

// The distance as a share of all ids, 0 … 1; exact to 53 bits.
inline double distance_share(const NodeId& a, const NodeId& b) {
  constexpr double all = 18446744073709551616.0;  // 2^64
  return static_cast<double>(detail::big_endian_word(a, 0) ^ detail::big_endian_word(b, 0)) / all;
}

// For hash tables. The ids are already hashes.
struct NodeIdHash {
  std::size_t operator()(const NodeId& id) const {
    std::size_t value = 0;
    std::memcpy(&value, id.data(), sizeof value);
    return value;
  }
};

}  // namespace neuroshard::net
