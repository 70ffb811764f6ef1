// Keys and addresses of simulated nodes: the same of a number in every run with a seed.
#pragma once

#include "core/crypto/hash.h"
#include "core/crypto/keys.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::sim {

inline crypto::KeyPair key_of_node(std::uint64_t seed, std::size_t node) {
  Bytes bytes;
  append_le(bytes, seed);
  append_le(bytes, static_cast<std::uint64_t>(node));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

inline platform::Endpoint endpoint_of_node(std::size_t node) {
  return {platform::IpAddress::v4(11, static_cast<std::uint8_t>(node >> 16),
                                  static_cast<std::uint8_t>(node >> 8), static_cast<std::uint8_t>(node)),
          9000};
}

}  // namespace neuroshard::sim
