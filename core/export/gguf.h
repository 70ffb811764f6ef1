// The GGUF file format, version 3, as far as this project writes and reads it
// (https://github.com/ggml-org/ggml, docs/gguf.md): a header of keys with typed values, a list of tensors, and the tensors'
// data, each from a multiple of the alignment on. All little-endian. Dimensions: fastest first.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/export/stored_type.h"

namespace neuroshard::exporting {

inline constexpr std::uint32_t gguf_magic = 0x46554747;  // "GGUF"
inline constexpr std::uint32_t gguf_version = 3;
inline constexpr std::uint64_t gguf_alignment = 32;

// The numbers of the value types in the file.
enum class GgufType : std::uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};

// The values that our files have. A reader turns each integer type into the widest one.
using GgufValue = std::variant<std::uint32_t, std::int32_t, float, bool, std::string, std::uint64_t,
                               std::int64_t, double, std::vector<std::string>, std::vector<std::int32_t>>;

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // fastest first, 1 to 4
  StoredType type = StoredType::F32;
  std::uint64_t offset = 0;  // from the start of the data; the writer sets it
  std::uint64_t bytes = 0;   // the same
};

// ggml's number of a type.
constexpr std::uint32_t ggml_type(StoredType type) {
  switch (type) {
    case StoredType::F32: return 0;
    case StoredType::F16: return 1;
    case StoredType::BF16: return 30;
    case StoredType::Q8_0: break;
  }
  return 8;
}

}  // namespace neuroshard::exporting
