// Sizes and offsets of everything that crosses the module's boundary, measured by a unit compiled in one C++
// standard.
#pragma once

#include <cstddef>
#include <vector>

std::vector<std::size_t> shared_sizes_cpp17();
std::vector<std::size_t> shared_sizes_cpp20();
