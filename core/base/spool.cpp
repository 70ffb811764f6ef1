#include "core/base/spool.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard {
namespace {

class MemoryItem final : public SpoolItem {
 public:
  explicit MemoryItem(std::uint64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}
  Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    NS_CHECK(offset <= bytes_.size() && bytes.size() <= bytes_.size() - offset);
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Expected<ByteSourcePtr> finish(std::uint64_t bytes) override {
    NS_CHECK(bytes <= bytes_.size());
    bytes_.resize(static_cast<std::size_t>(bytes));
    bytes_.shrink_to_fit();
    return in_memory(std::move(bytes_));
  }

 private:
  Bytes bytes_;
};

}  // namespace

Expected<std::unique_ptr<SpoolItem>> MemorySpool::create(std::uint64_t bytes) {
  return std::unique_ptr<SpoolItem>(std::make_unique<MemoryItem>(bytes));
}

}  // namespace neuroshard
