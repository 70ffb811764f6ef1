#include "core/model/torch_allocator.h"

#include <c10/core/Allocator.h>

namespace neuroshard::model {
namespace {

class PoolAllocator final : public c10::Allocator {
 public:
  explicit PoolAllocator(MemoryPool& pool) : pool_(&pool) {}

  c10::DataPtr allocate(size_t bytes) const override {
    void* memory = bytes == 0 ? nullptr : pool_->allocate(bytes);
    return {memory, memory, &MemoryPool::release_to_owner, c10::Device(c10::DeviceType::CPU)};
  }
  // Memory without a DataPtr: LibTorch's calls of oneDNN ask for it.
  c10::DeleterFnPtr raw_deleter() const override { return &MemoryPool::release_to_owner; }

 private:
  MemoryPool* pool_;
};

constexpr uint8_t allocator_priority = 100;  // above LibTorch's own

}  // namespace

void use_for_tensors(MemoryPool& pool) {
  // Lives as long as LibTorch, which keeps the pointer and can't be unloaded.
  auto* allocator = new PoolAllocator(pool);
  c10::SetAllocator(c10::DeviceType::CPU, allocator, allocator_priority);
}

}  // namespace neuroshard::model
