// The start-up check of the matrix products: right, and by the kernels that we mean.
#pragma once

#include "core/compute/module_abi.h"

namespace neuroshard::model {

struct ProductsCheck {
  bool correct = false;
  bool torch_uses_onednn = false;  // LibTorch's product called this module's sgemm_
  double gigaflops = 0;            // best of a few products of 256×256×256
};
// Takes about a millisecond. Throws OutOfMemory.
ProductsCheck check_products(compute::HostServices& host);

// Calls of sgemm_ that this module has answered (blas.cpp).
std::uint64_t answered_products();

}  // namespace neuroshard::model
