// The part of the pickle protocol (Python's pickletools.py is its reference) that describes one tensor.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::data::detail {

// The description of the tensor in data.pkl of a `.pt` file.
struct PickledTensor {
  std::string storage_key;      // the values are in data/<key>
  std::uint32_t item_size = 8;  // 8: int64, 4: int32
  std::uint64_t storage_items = 0;
  std::uint64_t first_item = 0;
  std::uint64_t items = 0;
};

// Longest data.pkl accepted; torch writes about 150 bytes for a tensor.
inline constexpr std::size_t max_pickle_bytes = 64u << 10;
inline constexpr std::size_t max_pickle_stack = 64;
inline constexpr std::size_t max_pickle_memo = 64;
inline constexpr std::size_t max_pickle_string = 256;

// Corrupt or Unsupported, naming what was met. Executes nothing.
Expected<PickledTensor> read_tensor_pickle(ByteSpan pickle);
// data.pkl for a contiguous int64 tensor of that many items in storage "0".
Bytes write_tensor_pickle(std::uint64_t items);

}  // namespace neuroshard::data::detail
