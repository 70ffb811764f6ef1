#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {

#if defined(__x86_64__)
bool has_codec_kernels_avx2() {
  // F16C is no name that every compiler's check knows.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool half_precision = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return half_precision && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("popcnt");
}
const CodecKernels& best_codec_kernels() {
  static const CodecKernels& best = has_codec_kernels_avx2() ? codec_kernels_avx2 : codec_kernels_portable;
  return best;
}
#else
bool has_codec_kernels_avx2() {
  return false;
}
const CodecKernels& best_codec_kernels() {
  return codec_kernels_portable;
}
#endif

}  // namespace neuroshard::outer::detail
