// The speed of a matrix product in bf16 when nothing is packed beforehand: the best that a program can do
// that hands oneDNN plain matrices. The measure of a peer's configuration where oneDNN's packing costs much.
#pragma once

#include <cstdint>

#include "core/base/expected.h"

namespace neuroshard::bench {

// `repeats` products [side,side]·[side,side], bf16 in and out, both operands row-major. The number of
// operations done. Unsupported where oneDNN has no bf16 here.  Threads: OpenMP's.
Expected<double> plain_bf16_products(std::uint32_t side, std::uint32_t repeats);

}  // namespace neuroshard::bench
