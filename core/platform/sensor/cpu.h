// The processors that this process may use. Linux on x86-64 and AArch64; elsewhere names and flags stay
// empty.
#pragma once

#include <string>

#include "core/base/clock.h"

namespace neuroshard::platform {

// Instruction sets of interest to matrix products. All false where they can't be asked for.
struct IsaFlags {
  bool avx2 = false;
  bool avx512f = false;
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
};

struct CpuInfo {
  std::string model;    // "AMD EPYC 7763 64-Core Processor"; empty when unknown
  int usable_cpus = 1;  // by affinity and by the control group's quota, rounded up; at least 1
  IsaFlags isa;
  // "AVX2", "AVX-512 (bf16)", "AMX"; "baseline" without any of them. For people.
  std::string isa_name() const;
};

CpuInfo cpu_info();
// The same with /proc and /sys below `root`, for tests; affinity stays the process's own.
CpuInfo cpu_info(const std::string& root);

// Time that processors have spent on the calling thread; 0 where the system does not tell.
Duration thread_processor_time();
// And on all threads of this process.
Duration process_processor_time();

}  // namespace neuroshard::platform
