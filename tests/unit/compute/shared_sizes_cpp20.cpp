// Compiled as C++20 (see CMakeLists.txt).
#include "tests/unit/compute/shared_sizes.h"

#include "core/base/rng.h"
#include "core/compute/module_abi.h"

#if __cplusplus < 202002L
#error "not the standard that this unit is meant for"
#endif

std::vector<std::size_t> shared_sizes_cpp20() {
#include "tests/unit/compute/shared_sizes.inc"
}
