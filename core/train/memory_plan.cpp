#include "core/train/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace neuroshard::train {
namespace {

constexpr std::uint64_t mib = 1u << 20;

std::uint64_t round_up_mib(std::uint64_t bytes) {
  return bytes / mib + (bytes % mib != 0 ? 1 : 0);
}

// Sums that stop at the largest value instead of wrapping: an absurd estimate must not look small.
std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  return b > std::numeric_limits<std::uint64_t>::max() - a ? std::numeric_limits<std::uint64_t>::max()
                                                           : a + b;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a
             ? std::numeric_limits<std::uint64_t>::max()
             : a * b;
}

Error too_small(const MemoryNeeds& needs, std::uint64_t needed, std::uint64_t limit) {
  const std::uint64_t model = add(add(needs.parameters, needs.gradients), needs.moments);
  return make_error(
      ErrorCode::Exhausted,
      fmt::format("Training does not fit into the memory limit of {} MiB: {} MiB are missing. It needs {} "
                  "MiB (program "
                  "{}, model and optimizer {}, checkpoint {}, text {}, one sequence {}, reserve {}). Raise "
                  "the memory "
                  "limit to at least {} MiB, or train a smaller model.",
                  limit / mib, round_up_mib(needed - limit), round_up_mib(needed),
                  round_up_mib(needs.baseline), round_up_mib(model), round_up_mib(needs.snapshot_slot),
                  round_up_mib(needs.data), round_up_mib(add(needs.workspace, activation_bytes(needs, 1))),
                  round_up_mib(needs.margin), round_up_mib(needed)));
}

}  // namespace

std::uint32_t choose_micro_batch(std::uint64_t available, std::uint64_t activation_per_sample,
                                 std::uint32_t max_micro_batch) {
  if (activation_per_sample == 0 || max_micro_batch <= 1) return 1;
  const double fitting = std::floor(activation_share * static_cast<double>(available) /
                                    static_cast<double>(activation_per_sample));
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, static_cast<double>(max_micro_batch)));
}

std::uint64_t activation_bytes(const MemoryNeeds& needs, std::uint32_t samples) {
  return add(multiply(samples, needs.activation_per_sample),
             multiply(std::min(samples, needs.most_deferred), needs.deferred_per_sample));
}

Expected<MemoryPlan> plan_memory(const MemoryNeeds& needs, std::uint64_t limit,
                                 std::uint32_t max_micro_batch) {
  if (limit == 0 || max_micro_batch == 0 || needs.activation_per_sample == 0) {
    return make_error(ErrorCode::InvalidArgument,
                      "A memory plan needs a limit, a micro-batch and an activation size above 0.");
  }
  std::uint64_t common = add(needs.baseline, needs.parameters);
  for (const std::uint64_t part :
       {needs.gradients, needs.moments, needs.data, needs.margin, needs.workspace}) {
    common = add(common, part);
  }
  const std::uint64_t one = activation_bytes(needs, 1);
  MemoryPlan plan;
  plan.limit = limit;
  plan.fixed = add(common, needs.snapshot_whole);
  if (add(plan.fixed, one) > limit) {
    plan.whole_snapshot = false;
    plan.fixed = add(common, needs.snapshot_slot);
    const std::uint64_t needed = add(plan.fixed, one);
    if (needed > limit) return too_small(needs, needed, limit);
  }
  plan.available = limit - plan.fixed;
  plan.micro_batch = choose_micro_batch(plan.available, needs.activation_per_sample, max_micro_batch);
  const double share = activation_share * static_cast<double>(plan.available);
  while (needs.deferred_per_sample > 0 && plan.micro_batch > 1 &&
         static_cast<double>(activation_bytes(needs, plan.micro_batch)) > share)
    --plan.micro_batch;
  plan.expected = plan.fixed - needs.margin + activation_bytes(needs, plan.micro_batch);
  return plan;
}

}  // namespace neuroshard::train
