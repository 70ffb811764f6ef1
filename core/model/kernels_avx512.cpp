#define NS_KERNEL_TABLE kernels_avx512
#include "core/model/detail/kernels_body.h"
