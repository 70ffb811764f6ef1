#define NS_AGGREGATION_TABLE aggregation_kernels_avx512
#include "core/outer/detail/aggregation_kernels_body.h"
