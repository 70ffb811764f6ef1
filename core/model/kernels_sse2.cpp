#define NS_KERNEL_TABLE kernels_sse2
#include "core/model/detail/kernels_body.h"
