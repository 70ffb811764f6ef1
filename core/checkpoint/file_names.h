// Names within a checkpoint (docs/protocol/checkpoints.md) for those who read its tensors themselves.
#pragma once

namespace neuroshard::checkpoint {

inline constexpr const char* weights_file_name = "weights.safetensors";
inline constexpr const char* optimizer_file_name = "optimizer.safetensors";
// In the latter: the balancing biases of the router, zeros unless the profile asks for them.
inline constexpr const char* router_bias_extra = "router_bias";  // as an ExtraTensor
inline constexpr const char* router_bias_tensor = "extra.router_bias";

}  // namespace neuroshard::checkpoint
