// Attention's entries of the kernel tables.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/attention_backward.h"
#include "core/model/detail/attention_few.h"
#include "core/model/detail/attention_forward.h"

namespace neuroshard::model {
namespace {

void attention_forward(const AttentionShape& shape, const AttentionInput& input, int threads, float* scratch,
                       void* output, float* log_sum) {
  if (shape.queries <= attention_few) {
    attention_forward_few(shape, input, threads, scratch, values(output), log_sum);
  } else {
    attention_forward_blocks(shape, input, threads, scratch, values(output), log_sum);
  }
}

}  // namespace
}  // namespace neuroshard::model
