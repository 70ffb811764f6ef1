// Bytes that a TCP connection has received, whoever reads them.
#pragma once

#include <cstdint>

namespace neuroshard::platform::detail {

// 0 where the system does not count them.
std::uint64_t received_bytes(int descriptor);

}  // namespace neuroshard::platform::detail
