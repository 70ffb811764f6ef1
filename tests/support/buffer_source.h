// Bytes in memory as a tensor::ByteSource, for tests.
#pragma once

#include <algorithm>
#include <utility>

#include "core/tensor/safetensors.h"

namespace neuroshard::testing {

class BufferSource final : public tensor::ByteSource {
 public:
  explicit BufferSource(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    if (offset > bytes_.size() || target.size() > bytes_.size() - offset) {
      return make_error(ErrorCode::Corrupt, "the buffer ends early");
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), target.size(), target.begin());
    return {};
  }

 private:
  Bytes bytes_;
};

}  // namespace neuroshard::testing
