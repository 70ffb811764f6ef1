// Attention's entries of the kernel tables.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/attention_backward.h"
#include "core/model/detail/attention_few.h"
#include "core/model/detail/attention_forward.h"
#include "core/model/detail/attention_pairs.h"

namespace neuroshard::model {
namespace {

template <class Operands>
inline void attention_forward_with(const AttentionShape& shape, const AttentionInput& input, int threads,
                                   float* scratch, void* output, float* log_sum) {
  if (shape.queries <= attention_few) {
    attention_forward_few(shape, input, threads, scratch, values(output), log_sum);
  } else {
    attention_forward_blocks<Operands>(shape, input, threads, scratch, values(output), log_sum);
  }
}

void attention_forward(const AttentionShape& shape, const AttentionInput& input, int threads, float* scratch,
                       void* output, float* log_sum) {
  attention_forward_with<SingleOperands>(shape, input, threads, scratch, output, log_sum);
}
void attention_backward(const AttentionShape& shape, const AttentionInput& input, const void* output,
                        const float* log_sum, const void* gradient_output, int threads, float* scratch,
                        const AttentionGradient& gradient) {
  attention_backward_blocks<SingleOperands>(shape, input, output, log_sum, gradient_output, threads, scratch,
                                            gradient);
}

#ifdef NS_KERNEL_BFLOAT16
void attention_forward_pairs(const AttentionShape& shape, const AttentionInput& input, int threads,
                             float* scratch, void* output, float* log_sum) {
  attention_forward_with<PairedOperands>(shape, input, threads, scratch, output, log_sum);
}
void attention_backward_pairs(const AttentionShape& shape, const AttentionInput& input, const void* output,
                              const float* log_sum, const void* gradient_output, int threads, float* scratch,
                              const AttentionGradient& gradient) {
  attention_backward_blocks<PairedOperands>(shape, input, output, log_sum, gradient_output, threads, scratch,
                                            gradient);
}
#endif

}  // namespace
}  // namespace neuroshard::model
