// Bytes of a fuzzer as the source of a reader. A reader promises to stay inside; a read beyond the end ends the program.
#pragma once

#include <cstring>

#include "core/base/check.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::fuzz {

class MemorySource final : public tensor::ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    NS_CHECK(offset <= bytes_.size() && target.size() <= bytes_.size() - offset);
    if (target.size() != 0) std::memcpy(target.data(), bytes_.data() + offset, target.size());
    return {};
  }

 private:
  ByteSpan bytes_;
};

}  // namespace neuroshard::fuzz
