#define NS_KERNEL_TABLE kernels_avx512_bf16
#define NS_KERNEL_BFLOAT16
#include "core/model/detail/kernels_body.h"
