#include "core/platform/process/large_buffer.h"

#include <sys/mman.h>

#include <utility>

namespace neuroshard::platform {
namespace {

constexpr std::size_t smallest_page = 4096;

}  // namespace

LargeBuffer LargeBuffer::allocate(std::size_t bytes) {
  LargeBuffer result;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return result;
#ifdef MADV_HUGEPAGE
  static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));  // a wish
#endif
  result.data_ = static_cast<std::uint8_t*>(memory);
  result.size_ = bytes;
  return result;
}

LargeBuffer::LargeBuffer(LargeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

LargeBuffer& LargeBuffer::operator=(LargeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

LargeBuffer::~LargeBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void LargeBuffer::touch() const {
  for (std::size_t at = 0; at < size_; at += smallest_page) {
    static_cast<volatile std::uint8_t*>(data_)[at] = 0;
  }
}

}  // namespace neuroshard::platform
