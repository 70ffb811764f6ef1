#define NS_AGGREGATION_TABLE aggregation_kernels_portable
#include "core/outer/detail/aggregation_kernels_body.h"
