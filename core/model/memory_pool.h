// The memory that the module's tensors live in: counted, limited, and reused. Training asks for the same
// sizes at every micro-batch, so freed blocks wait in lists by exact size instead of going back to the system
// and being faulted in again.
//
// Limit: blocks in use and blocks waiting never exceed it together; a request that does not fit throws
// OutOfMemory after the waiting blocks have been returned.  Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace neuroshard::model {

class OutOfMemory : public std::bad_alloc {
 public:
  OutOfMemory(std::uint64_t wanted, std::uint64_t live, std::uint64_t limit)
      : wanted_(wanted), live_(live), limit_(limit) {}
  const char* what() const noexcept override { return "the memory limit of the compute module is reached"; }
  std::uint64_t wanted() const { return wanted_; }
  std::uint64_t live() const { return live_; }
  std::uint64_t limit() const { return limit_; }  // 0: the system itself had no more

 private:
  std::uint64_t wanted_;
  std::uint64_t live_;
  std::uint64_t limit_;
};

class MemoryPool {
 public:
  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // At least `bytes`, aligned to 64. Throws OutOfMemory.
  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;
  // To the pool that it came from.
  static void release_to_owner(void* memory) noexcept;

  // Blocks that wait go back to the system.
  void trim();
  void set_limit(std::uint64_t bytes);
  std::uint64_t live() const;
  // Most in use since the last reset.
  std::uint64_t peak(bool reset);

 private:
  void return_waiting();

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> waiting_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t live_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t highest_ = 0;  // peak that is never reset: how much may wait
  std::uint64_t limit_ = 0;
};

}  // namespace neuroshard::model
