// A spool in memory that a test can fill up. Header only.
#pragma once

#include <memory>

#include "core/base/spool.h"

namespace neuroshard::test {

class FillableSpool final : public Spool {
 public:
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    if (full) return make_error(ErrorCode::Exhausted, "the spool is full");
    return memory_.create(bytes);
  }
  bool full = false;

 private:
  MemorySpool memory_;
};

}  // namespace neuroshard::test
