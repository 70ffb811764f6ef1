#include "core/model/kv_cache.h"

#include "core/model/tensors.h"

namespace neuroshard::model {

KvCache make_kv_cache(const Kernels& kernels, std::int64_t capacity, std::int64_t layers,
                      std::int64_t width) {
  KvCache cache;
  cache.capacity = capacity;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    cache.layers.push_back(
        {make_activations(kernels, {capacity, width}), make_activations(kernels, {capacity, width})});
  }
  return cache;
}

}  // namespace neuroshard::model
