// Key pairs of tests: the same number gives the same key on every machine. Header only.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/crypto/keys.h"

namespace neuroshard::test {

inline crypto::KeyPair key_of(std::uint8_t number) {
  Hash256 seed{};
  seed.fill(number);
  return crypto::KeyPair::from_seed(seed);
}

// For tests with more than 255 keys.
inline crypto::KeyPair key_numbered(std::uint16_t number) {
  Hash256 seed{};
  store_le(seed.data(), number);
  seed[31] = 1;
  return crypto::KeyPair::from_seed(seed);
}

}  // namespace neuroshard::test
