#include "core/model/torch_allocator.h"

#include <c10/core/Allocator.h>

namespace neuroshard::model {
namespace {

class PoolAllocator final : public c10::Allocator {
 public:
  explicit PoolAllocator(MemoryPool& pool) : pool_(&pool) {}

  c10::DataPtr allocate(size_t bytes) const override {
    auto* block = bytes == 0 ? nullptr : new Block{pool_, nullptr};
    if (block == nullptr) return {nullptr, nullptr, &free_block, c10::Device(c10::DeviceType::CPU)};
    try {
      block->memory = pool_->allocate(bytes);
    } catch (...) {
      delete block;
      throw;
    }
    return {block->memory, block, &free_block, c10::Device(c10::DeviceType::CPU)};
  }

 private:
  struct Block {
    MemoryPool* pool;
    void* memory;
  };
  static void free_block(void* context) {
    auto* block = static_cast<Block*>(context);
    if (block == nullptr) return;
    block->pool->release(block->memory);
    delete block;
  }

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
