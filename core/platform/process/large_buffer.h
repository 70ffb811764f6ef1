// Memory for hundreds of megabytes that are filled at once: in large pages where the system has them, because
// bringing in 4 KiB at a time costs more than filling them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/span.h"

namespace neuroshard::platform {

// Owned; given back to the system when this object goes. Threads: as an array.
class LargeBuffer {
 public:
  LargeBuffer() = default;
  // Zeros, of which nothing is resident before it is touched. Empty when the system refuses; bytes > 0.
  static LargeBuffer allocate(std::size_t bytes);
  LargeBuffer(LargeBuffer&& other) noexcept;
  LargeBuffer& operator=(LargeBuffer&& other) noexcept;
  ~LargeBuffer();

  bool empty() const { return data_ == nullptr; }
  std::size_t size() const { return size_; }
  // Aligned to a page.
  std::uint8_t* data() const { return data_; }
  // Makes it resident now, so that whoever fills it first need not wait for the system.
  void touch() const;

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace neuroshard::platform
