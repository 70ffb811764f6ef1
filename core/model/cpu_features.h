// The processor's features, and those that the module uses.
#pragma once

#include <cstdint>

#include "core/compute/module_abi.h"
#include "core/model/boundary.h"
#include "core/model/kernels.h"

namespace neuroshard::model {

inline constexpr std::uint32_t max_threads = 1024;

// Threads that the process may run at one time (its affinity), at least 1.
std::uint32_t available_threads();

// "", "avx512" (without its bf16 units), "avx2" or "sse4": the highest level that oneDNN may use. Before its
// first use. "bf16-widened" limits nothing but attention, which then widens bf16 instead of multiplying pairs
// of it: to tell its rounding from that of the other products. InvalidArgument on another name, Unsupported
// when it comes too late.
compute::Status limit_instruction_set(const char* max_isa);
// The kernels for this processor, at most of that level.
const Kernels& best_kernels(const char* max_isa);
// Those for bf16 activations; null without AVX512_BF16 or when the level is limited.
const Kernels* bf16_kernels(const char* max_isa);

// Fills in device_name, gemm and isa.
void describe_processor(compute::ModuleInfo& info);

}  // namespace neuroshard::model
