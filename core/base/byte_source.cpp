#include "core/base/byte_source.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard {
namespace {

Error ends_early() {
  return make_error(ErrorCode::Corrupt, "the bytes end early");
}

bool fits(std::uint64_t size, std::uint64_t offset, std::uint64_t count) {
  return offset <= size && count <= size - offset;
}

class OwnedBytes final : public ByteSource {
 public:
  explicit OwnedBytes(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    return BytesView(bytes_).read_at(offset, target);
  }
  ByteSpan view() const override { return bytes_; }

 private:
  const Bytes bytes_;
};

class ZeroBytes final : public ByteSource {
 public:
  explicit ZeroBytes(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (!fits(size_, offset, target.size())) return ends_early();
    std::fill(target.begin(), target.end(), std::uint8_t{0});
    return {};
  }

 private:
  const std::uint64_t size_;
};

class PartOfBytes final : public ByteSource {
 public:
  PartOfBytes(ByteSourcePtr whole, std::uint64_t offset, std::uint64_t size)
      : whole_(std::move(whole)), offset_(offset), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (!fits(size_, offset, target.size())) return ends_early();
    return whole_->read_at(offset_ + offset, target);
  }
  ByteSpan view() const override {
    const ByteSpan whole = whole_->view();
    return whole.empty() ? whole
                         : whole.subspan(static_cast<std::size_t>(offset_), static_cast<std::size_t>(size_));
  }

 private:
  const ByteSourcePtr whole_;
  const std::uint64_t offset_, size_;
};

class JoinedBytes final : public ByteSource {
 public:
  explicit JoinedBytes(std::vector<ByteSourcePtr> parts) : parts_(std::move(parts)) {
    for (const ByteSourcePtr& part : parts_) size_ += part->size();
  }
  std::uint64_t size() const override { return size_; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (!fits(size_, offset, target.size())) return ends_early();
    for (const ByteSourcePtr& part : parts_) {
      if (target.empty()) break;
      if (offset >= part->size()) {
        offset -= part->size();
        continue;
      }
      const auto here =
          static_cast<std::size_t>(std::min<std::uint64_t>(target.size(), part->size() - offset));
      NS_RETURN_IF_ERROR(part->read_at(offset, target.first(here)));
      target = target.subspan(here);
      offset = 0;
    }
    return {};
  }

 private:
  const std::vector<ByteSourcePtr> parts_;
  std::uint64_t size_ = 0;
};

}  // namespace

Expected<void> BytesView::read_at(std::uint64_t offset, MutableByteSpan target) const {
  if (!fits(bytes_.size(), offset, target.size())) return ends_early();
  std::copy_n(bytes_.begin() + offset, target.size(), target.begin());
  return {};
}

ByteSourcePtr in_memory(Bytes bytes) {
  return std::make_shared<const OwnedBytes>(std::move(bytes));
}

ByteSourcePtr zero_bytes(std::uint64_t size) {
  return std::make_shared<const ZeroBytes>(size);
}

ByteSourcePtr part_of(ByteSourcePtr whole, std::uint64_t offset, std::uint64_t size) {
  NS_CHECK(fits(whole->size(), offset, size));
  return std::make_shared<const PartOfBytes>(std::move(whole), offset, size);
}

ByteSourcePtr joined(std::vector<ByteSourcePtr> parts) {
  return std::make_shared<const JoinedBytes>(std::move(parts));
}

Expected<Bytes> read_all(const ByteSource& source) {
  Bytes bytes(static_cast<std::size_t>(source.size()));
  NS_RETURN_IF_ERROR(source.read_at(0, bytes));
  return bytes;
}

}  // namespace neuroshard
