#include "core/model/memory_pool.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>

namespace neuroshard::model {
namespace {

// In front of every block. A whole cache line, to keep the alignment.
struct Header {
  std::size_t size;
  MemoryPool* pool;
};
constexpr std::size_t header_bytes = 64;
static_assert(sizeof(Header) <= header_bytes);
// The bytes that may wait before anything has been used.
constexpr std::uint64_t least_waiting_bytes = 16u << 20;

std::size_t round_up(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
}

void* start_of(void* memory) {
  return static_cast<char*>(memory) - header_bytes;
}
std::size_t size_of(void* memory) {
  return static_cast<Header*>(start_of(memory))->size;
}

}  // namespace

MemoryPool::~MemoryPool() {
  return_waiting();
}

void* MemoryPool::allocate(std::size_t bytes) {
  const std::size_t size = round_up(bytes) + header_bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (size < bytes || (limit_ != 0 && live_ + size > limit_)) throw OutOfMemory(bytes, live_, limit_);
  void* memory = nullptr;
  if (const auto found = waiting_.find(size); found != waiting_.end() && !found->second.empty()) {
    memory = found->second.back();
    found->second.pop_back();
    waiting_bytes_ -= size;
  } else {
    const std::uint64_t bound = std::max(highest_ + highest_ / 4, least_waiting_bytes);
    if (live_ + waiting_bytes_ + size > (limit_ != 0 ? std::min(limit_, bound) : bound)) return_waiting();
    void* start = std::aligned_alloc(64, size);
    if (start == nullptr) {
      return_waiting();
      start = std::aligned_alloc(64, size);
    }
    if (start == nullptr) throw OutOfMemory(bytes, live_, 0);
    *static_cast<Header*>(start) = {size, this};
    memory = static_cast<char*>(start) + header_bytes;
  }
  live_ += size;
  peak_ = std::max(peak_, live_);
  highest_ = std::max(highest_, live_);
  return memory;
}

void MemoryPool::release(void* memory) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t size = size_of(memory);
  live_ -= size;
  try {
    waiting_[size].push_back(memory);
    waiting_bytes_ += size;
  } catch (...) {  // no memory for the list itself
    std::free(start_of(memory));
  }
}

void MemoryPool::release_to_owner(void* memory) noexcept {
  if (memory != nullptr) static_cast<Header*>(start_of(memory))->pool->release(memory);
}

void MemoryPool::trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return_waiting();
}

void MemoryPool::set_limit(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
  if (limit_ != 0 && live_ + waiting_bytes_ > limit_) return_waiting();
}

std::uint64_t MemoryPool::live() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return live_;
}

std::uint64_t MemoryPool::peak(bool reset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t result = peak_;
  if (reset) peak_ = live_;
  return result;
}

void MemoryPool::return_waiting() {
  for (auto& [size, blocks] : waiting_) {
    for (void* memory : blocks) std::free(start_of(memory));
  }
  waiting_.clear();
  waiting_bytes_ = 0;
#ifdef __GLIBC__
  malloc_trim(0);  // the limit is on what the process holds, and the C library keeps freed memory otherwise
#endif
}

}  // namespace neuroshard::model
