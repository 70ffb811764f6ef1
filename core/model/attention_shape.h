// The operands of attention: sizes and rows in memory. Only C headers, for the kernels (kernels.h).
#pragma once

#include <stdint.h>  // NOLINT: see above

namespace neuroshard::model {

struct AttentionShape {
  int64_t batch = 0;    // B
  int64_t queries = 0;  // T, per sequence
  int64_t past = 0;     // keys before the first query (KV cache); B must be 1 unless it is 0
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;  // D
};

// Rows of q, k and v in memory and their strides, in activations. Sequence b starts at row b·T.
struct AttentionInput {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  int64_t q_stride = 0;
  int64_t kv_stride = 0;
};

// Gradients lie as q, k and v do, with the same strides, and are overwritten.
struct AttentionGradient {
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
};

// Queries are taken in blocks of this many, and so are keys.
constexpr int64_t attention_block = 64;
// Up to this many queries per sequence read keys and values where they are, in chunks of this many keys.
constexpr int64_t attention_few = 4;
constexpr int64_t attention_chunk = 128;

static constexpr int64_t attention_padded(int64_t dim) {
  return (dim + 15) / 16 * 16;
}
static constexpr int64_t attention_even(int64_t rows) {
  return rows + rows % 2;
}
static constexpr int64_t attention_chunks(const AttentionShape& shape) {
  return (shape.past + shape.queries + attention_chunk - 1) / attention_chunk;
}

// Floats of one thread's working memory, and of what all threads share.
static constexpr int64_t attention_forward_floats(const AttentionShape& shape) {
  const int64_t padded = attention_padded(shape.dim);
  if (shape.queries <= attention_few)
    return shape.heads * shape.queries * attention_chunk + attention_block * padded;
  return 2 * attention_even(shape.past + shape.queries) * padded + 3 * attention_block * padded +
         attention_block * (attention_block + attention_block / 2 + 3);
}
static constexpr int64_t attention_forward_shared_floats(const AttentionShape& shape) {
  if (shape.queries > attention_few) return 0;
  const int64_t rows = shape.batch * shape.heads * shape.queries;
  return rows * attention_padded(shape.dim) * (1 + attention_chunks(shape)) +
         rows * 2 * attention_chunks(shape);
}
static constexpr int64_t attention_backward_floats(const AttentionShape& shape) {
  const int64_t padded = attention_padded(shape.dim);
  return 4 * attention_even(shape.queries) * padded + 5 * attention_block * padded +
         attention_block * (3 * attention_block + 2);
}
// Gradients of k and v per query head, if several share a kv head.
static constexpr int64_t attention_backward_shared_floats(const AttentionShape& shape) {
  return shape.heads == shape.kv_heads
             ? 0
             : 2 * shape.batch * shape.heads * shape.queries * attention_padded(shape.dim);
}

}  // namespace neuroshard::model
