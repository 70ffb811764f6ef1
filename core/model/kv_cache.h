// Keys and values of the positions that a sequence has passed, per layer, so that generation computes only
// what is new. Keys are stored after RoPE at their absolute positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/kernels.h"

namespace neuroshard::model {

struct KvLayer {
  at::Tensor keys;    // [capacity, K] activations
  at::Tensor values;  // [capacity, K]
};

struct KvCache {
  std::int64_t capacity = 0;
  std::int64_t length =
      0;  // positions filled; advanced once all layers have run, so that a failed call changes nothing
  std::vector<KvLayer> layers;
};

// Throws OutOfMemory.
KvCache make_kv_cache(const Kernels& kernels, std::int64_t capacity, std::int64_t layers, std::int64_t width);

}  // namespace neuroshard::model
