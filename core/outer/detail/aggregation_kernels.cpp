#include "core/outer/detail/aggregation_kernels.h"

#include "core/base/check.h"

namespace neuroshard::outer {

bool is_supported(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable: return true;
#if defined(__x86_64__)
    case InstructionSet::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::Avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx2") &&
             __builtin_cpu_supports("fma");
#endif
    default: return false;
  }
}

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable: return "portable";
    case InstructionSet::Avx2: return "avx2";
    case InstructionSet::Avx512: return "avx512";
  }
  return "unknown";
}

namespace detail {

InstructionSet best_instruction_set() {
  for (const InstructionSet set : {InstructionSet::Avx512, InstructionSet::Avx2})
    if (is_supported(set)) return set;
  return InstructionSet::Portable;
}

const AggregationKernels& kernels_of(InstructionSet set) {
  NS_CHECK(is_supported(set));
#if defined(__x86_64__)
  if (set == InstructionSet::Avx2) return aggregation_kernels_avx2;
  if (set == InstructionSet::Avx512) return aggregation_kernels_avx512;
#endif
  return aggregation_kernels_portable;
}

}  // namespace detail
}  // namespace neuroshard::outer
