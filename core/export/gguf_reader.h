// Reads the header of a GGUF file of version 3 from anywhere. Every count and length is checked against the bytes that are left
// before anything is allocated, so what it keeps is proportional to the file.
//
// It knows what this project writes: the value types of GgufValue (smaller integers become U32 and I32), arrays of texts
// and of 32-bit integers, the stored types F32, F16, BF16 and Q8_0; anything else is Unsupported. Beyond the published
// rules the tensors' data must follow each other in the order of their list, padded to the alignment and no more.
#pragma once

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/export/gguf.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::exporting {

inline constexpr std::uint64_t max_gguf_header_bytes = 256u << 20;
inline constexpr std::uint64_t max_gguf_entries = 4096;
inline constexpr std::uint64_t max_gguf_tensors = 1'000'000;
inline constexpr std::uint64_t max_gguf_name_bytes = 1024;  // of a key or a tensor

struct GgufHeader {
  std::vector<GgufEntry> entries;
  std::vector<GgufTensor> tensors;
  std::uint64_t data_offset = 0;  // from the start of the file

  // Null when there is none, or it has another type.
  template <class T>
  const T* value(const std::string& key) const {
    for (const GgufEntry& entry : entries)
      if (entry.key == key) return std::get_if<T>(&entry.value);
    return nullptr;
  }
  const GgufTensor* tensor(const std::string& name) const;
};

// Errors: Corrupt, Unsupported, Exhausted (a bound above), those of the source.
Expected<GgufHeader> read_gguf_header(tensor::ByteSource& source);

}  // namespace neuroshard::exporting
