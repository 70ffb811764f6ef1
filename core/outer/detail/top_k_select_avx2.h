// CodecKernels::select for AVX2.
#pragma once

#include <stdint.h>  // NOLINT: see codec_kernels.h

namespace neuroshard::outer::detail {

uint32_t select_avx2(const float* values, uint32_t k, uint16_t* places, float* selected, uint32_t* largest,
                     uint32_t* hint);

}  // namespace neuroshard::outer::detail
