#define NS_KERNEL_TABLE kernels_avx2
#include "core/model/detail/kernels_body.h"
