#include "core/outer/detail/byte_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::outer::detail {

ByteWindow::ByteWindow(ByteSourcePtr source, std::uint64_t begin, std::uint64_t size)
    : source_(std::move(source)),
      begin_(begin),
      size_(size),
      room_(static_cast<std::size_t>(std::min<std::uint64_t>(size, most))) {
  const ByteSpan whole = source_->view();
  if (!whole.empty()) {
    NS_CHECK(begin <= whole.size() && size <= whole.size() - begin);
    bytes_ = whole.data() + begin;
    held_ = static_cast<std::size_t>(size);
    return;
  }
  buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(room_);
  bytes_ = buffer_.get();
}

const std::uint8_t* ByteWindow::load(std::uint64_t offset, std::size_t bytes) {
  if (error_) return nullptr;
  NS_CHECK(buffer_ != nullptr && offset >= first_ && offset <= size_ && bytes <= size_ - offset &&
           bytes <= room_);
  const std::uint64_t end = first_ + held_;
  const std::size_t kept = offset < end ? static_cast<std::size_t>(end - offset) : 0;
  if (kept > 0) std::memmove(buffer_.get(), buffer_.get() + (held_ - kept), kept);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(room_, size_ - offset));
  auto read = source_->read_at(begin_ + offset + kept, {buffer_.get() + kept, wanted - kept});
  if (!read.ok()) {
    error_ = std::move(read).error();
    held_ = 0;
    return nullptr;
  }
  first_ = offset;
  held_ = wanted;
  return bytes_;
}

}  // namespace neuroshard::outer::detail
