#include <fmt/format.h>

#include <cmath>

#include "core/compute/model_shape.h"
#include "core/compute/module.h"
#include "core/compute/shape_limits.h"
#include "core/compute/slot.h"

namespace neuroshard::compute {
namespace {

Error bad(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

Expected<void> in_range(const char* field, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  if (value >= least && value <= most) return {};
  return bad(fmt::format("The model's {} is {}; it must be between {} and {}.", field, value, least, most));
}

Expected<void> check_ranges(const ModelShape& shape) {
  NS_RETURN_IF_ERROR(in_range("layers", shape.layers, 1, shape_limits::layers));
  NS_RETURN_IF_ERROR(in_range("hidden", shape.hidden, 2, shape_limits::hidden));
  NS_RETURN_IF_ERROR(in_range("head_dim", shape.head_dim, 2, shape_limits::head_dim));
  NS_RETURN_IF_ERROR(in_range("heads", shape.heads, 1, shape.hidden));
  NS_RETURN_IF_ERROR(in_range("kv_heads", shape.kv_heads, 1, shape.heads));
  NS_RETURN_IF_ERROR(in_range("ffn", shape.ffn, 1, shape_limits::ffn));
  NS_RETURN_IF_ERROR(in_range("experts", shape.experts, 1, shape_limits::experts));
  NS_RETURN_IF_ERROR(in_range("experts_per_token", shape.experts_per_token, 1, shape.experts));
  NS_RETURN_IF_ERROR(in_range("vocab", shape.vocab, 2, shape_limits::vocab));
  return in_range("sequence", shape.sequence, 1, shape_limits::sequence);
}

Expected<void> check_relations(const ModelShape& shape) {
  if (shape.head_dim % 2 != 0) {
    return bad(fmt::format("The model's head_dim is {}; it must be even, because RoPE rotates pairs.",
                           shape.head_dim));
  }
  if (std::uint64_t{shape.heads} * shape.head_dim != shape.hidden) {
    return bad(fmt::format("The model's heads · head_dim is {} · {}; it must equal hidden, {}.", shape.heads,
                           shape.head_dim, shape.hidden));
  }
  if (shape.heads % shape.kv_heads != 0) {
    return bad(
        fmt::format("The model's kv_heads is {}; it must divide heads, {}.", shape.kv_heads, shape.heads));
  }
  if (!std::isfinite(shape.rope_theta) || shape.rope_theta <= 1.0f) {
    return bad(fmt::format("The model's rope_theta is {}; it must be greater than 1.", shape.rope_theta));
  }
  if (!std::isfinite(shape.rms_epsilon) || shape.rms_epsilon <= 0.0f || shape.rms_epsilon > 0.1f) {
    return bad(
        fmt::format("The model's rms_epsilon is {}; it must be above 0 and at most 0.1.", shape.rms_epsilon));
  }
  return {};
}

}  // namespace

Expected<void> validate(const ModelShape& shape) {
  NS_RETURN_IF_ERROR(check_ranges(shape));
  NS_RETURN_IF_ERROR(check_relations(shape));
  if (const std::uint64_t parameters = model_parameter_count(shape); parameters > shape_limits::parameters) {
    return bad(fmt::format("The model would have {} parameters; at most {} are supported.", parameters,
                           shape_limits::parameters));
  }
  return {};
}

}  // namespace neuroshard::compute
