// Bounds of a model's shape. Generous beside planned models (64 layers, width 8192), small enough that no
// product of them overflows 64 bits. C++17.
#pragma once

#include <cstdint>

namespace neuroshard::compute::shape_limits {

inline constexpr std::uint32_t layers = 1024;
inline constexpr std::uint32_t hidden = 65536;
inline constexpr std::uint32_t head_dim = 1024;
inline constexpr std::uint32_t ffn = 1u << 20;
inline constexpr std::uint32_t experts = 1024;
inline constexpr std::uint32_t vocab = 1u << 22;
inline constexpr std::uint32_t sequence = 1u << 20;
inline constexpr std::uint64_t parameters = std::uint64_t{1} << 42;

}  // namespace neuroshard::compute::shape_limits
