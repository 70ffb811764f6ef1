// Bytes that were read from a TCP connection, whoever has read them.
#pragma once

#include <cstdint>

namespace neuroshard::platform::detail {

// Bytes that wait in the system don't count. 0 where the system does not count them.
std::uint64_t read_bytes(int descriptor);

}  // namespace neuroshard::platform::detail
