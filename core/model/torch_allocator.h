// Makes a MemoryPool the CPU allocator of LibTorch, so that every tensor is counted and limited.
#pragma once

#include "core/model/memory_pool.h"

namespace neuroshard::model {

// The pool must outlive every tensor: in practice the process.
void use_for_tensors(MemoryPool& pool);

}  // namespace neuroshard::model
