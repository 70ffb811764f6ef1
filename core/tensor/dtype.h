// Element types of stored tensors: the ones that the safetensors format names. C++17.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard::tensor {

enum class DType : std::uint8_t {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64
};

// Bytes of one element; every type here has whole bytes.
std::uint32_t byte_size(DType type);
// The spelling of the safetensors format: "F32", "BF16" …
std::string_view to_string(DType type);
// Unsupported for a name that is not in the list above.
Expected<DType> parse_dtype(std::string_view name);

}  // namespace neuroshard::tensor
