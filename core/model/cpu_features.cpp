#include "core/model/cpu_features.h"

#include <cpuid.h>
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace neuroshard::model {
namespace {

const char* isa_name(dnnl_cpu_isa_t isa) {
  switch (isa) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    default: return "generic";
  }
}

// The brand string of the extended CPUID leaves, without the blanks that some processors put in front.
void brand(char* text, std::size_t size) {
  unsigned int words[12] = {};
  if (__get_cpuid_max(0x80000000u, nullptr) >= 0x80000004u) {
    for (unsigned int leaf = 0; leaf < 3; ++leaf) {
      unsigned int* word = words + 4 * leaf;
      __get_cpuid(0x80000002u + leaf, word, word + 1, word + 2, word + 3);
    }
  }
  char name[sizeof words + 1] = {};
  std::memcpy(name, words, sizeof words);
  const char* start = name;
  while (*start == ' ') ++start;
  std::snprintf(text, size, "%s", *start != 0 ? start : "unknown processor");
}

// Of oneDNN and of the kernel tables.
bool unlimited(const char* max_isa) {
  return *max_isa == 0 || std::strcmp(max_isa, "bf16-widened") == 0;
}

Kernels without_pairs(Kernels kernels) {
  kernels.attention_forward_pairs = nullptr;
  kernels.attention_backward_pairs = nullptr;
  return kernels;
}

}  // namespace

std::uint32_t available_threads() {
  return static_cast<std::uint32_t>(std::clamp(omp_get_num_procs(), 1, static_cast<int>(max_threads)));
}

compute::Status limit_instruction_set(const char* max_isa) {
  dnnl_cpu_isa_t isa = dnnl_cpu_isa_all;
  if (unlimited(max_isa)) return success();
  if (std::strcmp(max_isa, "avx512") == 0) {
    isa = dnnl_cpu_isa_avx512_core;
  } else if (std::strcmp(max_isa, "avx2") == 0) {
    isa = dnnl_cpu_isa_avx2;
  } else if (std::strcmp(max_isa, "sse4") == 0) {
    isa = dnnl_cpu_isa_sse41;
  } else {
    return failure(ErrorCode::InvalidArgument,
                   "The highest instruction set must be \"bf16-widened\", \"avx512\", \"avx2\", \"sse4\" or "
                   "empty.");
  }
  if (dnnl_set_max_cpu_isa(isa) == dnnl_success) return success();
  return failure(ErrorCode::Unsupported,
                 "The instruction set can only be limited before the first matrix product.");
}

const Kernels& best_kernels(const char* max_isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  const bool wide = unlimited(max_isa) || std::strcmp(max_isa, "avx512") == 0;
  if (avx2 && avx512 && wide) return kernels_avx512;
  if (avx2 && std::strcmp(max_isa, "sse4") != 0) return kernels_avx2;
  return kernels_sse2;
}

const Kernels* bf16_kernels(const char* max_isa) {
  const bool avx512 = &best_kernels(max_isa) == &kernels_avx512;
  if (!avx512 || !unlimited(max_isa) || !__builtin_cpu_supports("avx512bf16")) return nullptr;
  static const Kernels widened = without_pairs(kernels_avx512_bf16);
  return *max_isa == 0 ? &kernels_avx512_bf16 : &widened;
}

void describe_processor(compute::ModuleInfo& info) {
  brand(info.device_name, sizeof info.device_name);
  const dnnl_version_t* version = dnnl_version();
  std::snprintf(info.gemm, sizeof info.gemm, "oneDNN %d.%d.%d sgemm", version->major, version->minor,
                version->patch);
  std::snprintf(info.isa, sizeof info.isa, "%s", isa_name(dnnl_get_effective_cpu_isa()));
}

}  // namespace neuroshard::model
