// Room for results that are too large for memory: written once, read by whoever holds them, gone with the last
// holder and after a restart.
#pragma once

#include <memory>

#include "core/base/byte_source.h"

namespace neuroshard {

class SpoolItem : public ByteSink {
 public:
  // The first `bytes` of what was written, to be read; once, and then the item takes no more.
  virtual Expected<ByteSourcePtr> finish(std::uint64_t bytes) = 0;
};

// Threads: any.
class Spool {
 public:
  virtual ~Spool() = default;
  // For at most `bytes` bytes.  Errors: Exhausted names what is full.
  virtual Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) = 0;
};

// Everything in memory: for small models and simulations.
class MemorySpool final : public Spool {
 public:
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override;
};

}  // namespace neuroshard
