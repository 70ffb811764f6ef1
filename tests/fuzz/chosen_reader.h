// Shared by the fuzz programs of messages: the first byte of the input chooses the reader, the rest
// is what it reads, and what could be read writes itself back.
#pragma once

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace neuroshard::fuzz {

inline bool same(const Bytes& bytes, ByteSpan input) {
  return std::equal(bytes.begin(), bytes.end(), input.begin(), input.end());
}

// read(choice, input): nothing to choose by, nothing is read.
template <class Read>
int read_chosen(const std::uint8_t* data, std::size_t size, Read read) {
  if (size != 0) read(data[0], ByteSpan{data + 1, size - 1});
  return 0;
}

}  // namespace neuroshard::fuzz
