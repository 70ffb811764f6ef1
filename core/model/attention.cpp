#include "core/model/attention.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Small problems are done before another thread has woken up.
std::int64_t products_of(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.queries * (shape.past + shape.queries) * shape.dim;
}
int threads_for(std::int64_t products) {
  return products > 65536 ? omp_get_max_threads() : 1;
}

// Whether the processor multiplies bf16 pairs faster than it widens them. AMD's do, at twice the rate of
// fp32; measured on Sapphire Rapids, the instruction has half the rate of fp32.
bool multiplies_pairs(const Kernels& kernels) {
  return kernels.attention_forward_pairs != nullptr && __builtin_cpu_is("amd");
}

}  // namespace

void attention_forward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                       void* output, float* log_sum) {
  const int threads = threads_for(products_of(shape));
  const at::Tensor scratch =
      make_floats({threads * attention_forward_floats(shape) + attention_forward_shared_floats(shape)});
  const auto forward =
      multiplies_pairs(kernels) ? kernels.attention_forward_pairs : kernels.attention_forward;
  forward(shape, input, threads, floats(scratch), output, log_sum);
}

void attention_forward(const Kernels& kernels, const std::vector<AttentionTask>& tasks) {
  // One thread for each sequence with few queries; those with many keep all threads busy by themselves.
  std::vector<const AttentionTask*> few;
  std::int64_t floats_needed = 0;
  std::int64_t work = 0;
  for (const AttentionTask& task : tasks) {
    const AttentionShape& shape = task.shape;
    if (tasks.size() == 1 || shape.queries > attention_few) {
      attention_forward(kernels, shape, task.input, task.output, task.log_sum);
      continue;
    }
    few.push_back(&task);
    floats_needed =
        std::max(floats_needed, attention_forward_floats(shape) + attention_forward_shared_floats(shape));
    work += products_of(shape);
  }
  if (few.empty()) return;
  const int threads = threads_for(work);
  const at::Tensor scratch = make_floats({threads * floats_needed});
  const auto forward =
      multiplies_pairs(kernels) ? kernels.attention_forward_pairs : kernels.attention_forward;
  const auto count = static_cast<std::int64_t>(few.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) {
    const AttentionTask& task = *few[static_cast<std::size_t>(i)];
    forward(task.shape, task.input, 1, floats(scratch) + omp_get_thread_num() * floats_needed, task.output,
            task.log_sum);
  }
}

void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                        const void* output, const float* log_sum, const void* gradient_output,
                        const AttentionGradient& gradient) {
  const int threads = threads_for(products_of(shape));
  const at::Tensor scratch =
      make_floats({threads * attention_backward_floats(shape) + attention_backward_shared_floats(shape)});
  const auto backward =
      multiplies_pairs(kernels) ? kernels.attention_backward_pairs : kernels.attention_backward;
  backward(shape, input, output, log_sum, gradient_output, threads, floats(scratch), gradient);
}

}  // namespace neuroshard::model
