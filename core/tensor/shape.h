// Dimensions of a dense row-major tensor. C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/tensor/dtype.h"

namespace neuroshard::tensor {

// Slowest first. No dimension: a scalar, one element. A dimension of 0: no element.
using Dims = std::vector<std::uint64_t>;

// Exhausted when the product does not fit 64 bits.
Expected<std::uint64_t> element_count(Span<const std::uint64_t> dims);
// As element_count, times the size of an element.
Expected<std::uint64_t> tensor_bytes(Span<const std::uint64_t> dims, DType type);
// "[4, 128]", for messages.
std::string to_string(Span<const std::uint64_t> dims);

}  // namespace neuroshard::tensor
