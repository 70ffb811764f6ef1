// The shape of a NeuroLLM (docs/protocol/model.md). Plain data that crosses the compute module's boundary.
// C++17.
#pragma once

#include <cstdint>

namespace neuroshard::compute {

struct ModelShape {
  std::uint32_t layers = 0;             // L
  std::uint32_t hidden = 0;             // H, a multiple of head_dim
  std::uint32_t head_dim = 0;           // D, even
  std::uint32_t heads = 0;              // query heads, hidden / head_dim
  std::uint32_t kv_heads = 0;           // divides heads
  std::uint32_t ffn = 0;                // F, width of one expert
  std::uint32_t experts = 1;            // E; 1 is a dense model without router
  std::uint32_t experts_per_token = 1;  // k ≤ E
  std::uint32_t vocab = 0;              // V, rows of embedding and head (capacity; ≥ the tokenizer's size)
  std::uint32_t sequence = 0;           // T, longest training sequence; generation may go beyond
  float rope_theta = 10000.0f;
  float rms_epsilon = 1e-6f;
};

// Router options (docs/protocol/model.md).
struct RouterOptions {
  float balance_coefficient = 0.01f;
  float z_coefficient = 1e-3f;
  float capacity_factor = 0.0f;  // 0 = dropless; e.g. 1.25 drops what exceeds 1.25·tokens·k/E in training
  float bias_gamma = 0.0f;       // >0: selection-only bias balancing instead of the balance loss
};

}  // namespace neuroshard::compute
