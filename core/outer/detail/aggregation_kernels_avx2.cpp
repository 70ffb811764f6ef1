#define NS_AGGREGATION_TABLE aggregation_kernels_avx2
#include "core/outer/detail/aggregation_kernels_body.h"
