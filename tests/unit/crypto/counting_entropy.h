// Repeatable "randomness" for tests: 0, 1, 2, …
#pragma once

#include "core/crypto/entropy.h"

namespace neuroshard::test {

class CountingEntropy final : public crypto::Entropy {
 public:
  void fill(MutableByteSpan target) override {
    for (std::uint8_t& byte : target) byte = next_++;
  }

 private:
  std::uint8_t next_ = 0;
};

}  // namespace neuroshard::test
