// Randomness for secrets, injected so that tests are repeatable.
#pragma once

#include "core/base/bytes.h"

namespace neuroshard::crypto {

class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual void fill(MutableByteSpan target) = 0;
};

// The operating system's generator.  Threads: any.
class SystemEntropy final : public Entropy {
 public:
  void fill(MutableByteSpan target) override;
};

}  // namespace neuroshard::crypto
