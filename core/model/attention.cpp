#include "core/model/attention.h"

#include <omp.h>

#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Small problems are done before another thread has woken up.
int threads_for(const AttentionShape& shape) {
  const std::int64_t products = shape.batch * shape.heads * shape.queries * (shape.past + shape.queries);
  return products * shape.dim > 65536 ? omp_get_max_threads() : 1;
}

// Whether the processor multiplies bf16 pairs faster than it widens them. AMD's do, at twice the rate of
// fp32; measured on Sapphire Rapids, the instruction has half the rate of fp32.
bool multiplies_pairs(const Kernels& kernels) {
  return kernels.attention_forward_pairs != nullptr && __builtin_cpu_is("amd");
}

}  // namespace

void attention_forward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                       void* output, float* log_sum) {
  const int threads = threads_for(shape);
  const at::Tensor scratch =
      make_floats({threads * attention_forward_floats(shape) + attention_forward_shared_floats(shape)});
  const auto forward =
      multiplies_pairs(kernels) ? kernels.attention_forward_pairs : kernels.attention_forward;
  forward(shape, input, threads, floats(scratch), output, log_sum);
}

void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                        const void* output, const float* log_sum, const void* gradient_output,
                        const AttentionGradient& gradient) {
  const int threads = threads_for(shape);
  const at::Tensor scratch =
      make_floats({threads * attention_backward_floats(shape) + attention_backward_shared_floats(shape)});
  const auto backward =
      multiplies_pairs(kernels) ? kernels.attention_backward_pairs : kernels.attention_backward;
  backward(shape, input, output, log_sum, gradient_output, threads, floats(scratch), gradient);
}

}  // namespace neuroshard::model
