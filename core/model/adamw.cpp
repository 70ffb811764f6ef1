#include "core/model/adamw.h"

#include <cmath>

#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

void step_slot(const Kernels& kernels, SlotState& slot, const compute::StepOptions& options, double scale) {
  const auto step = static_cast<double>(options.step);
  const double correction1 = 1.0 - std::pow(options.beta1, step);
  const double correction2 = 1.0 - std::pow(options.beta2, step);
  for (std::size_t i = 0; i < slot.layout.size();) {
    const compute::ParameterInfo& first = slot.layout[i];
    std::uint64_t count = 0;
    while (i < slot.layout.size() && slot.layout[i].decay == first.decay) count += slot.layout[i++].count;
    const double keep = first.decay ? 1.0 - options.learning_rate * options.weight_decay : 1.0;
    kernels.adamw(floats(slot.parameters) + first.offset, floats(slot.gradient) + first.offset,
                  floats(slot.moment1) + first.offset, floats(slot.moment2) + first.offset,
                  static_cast<std::int64_t>(count), static_cast<float>(scale), static_cast<float>(keep),
                  static_cast<float>(options.learning_rate / correction1), static_cast<float>(options.beta1),
                  static_cast<float>(options.beta2), static_cast<float>(1.0 / std::sqrt(correction2)),
                  static_cast<float>(options.epsilon));
  }
}

}  // namespace

bool adamw_step(const Kernels& kernels, std::vector<SlotState>& slots, std::uint64_t model_parameters,
                const compute::StepOptions& options, compute::StepMetrics& metrics) {
  const double mean = 1.0 / static_cast<double>(options.tokens);
  std::vector<double> squares;
  double total = 0;
  for (const SlotState& slot : slots) {
    squares.push_back(kernels.sum_of_squares(floats(slot.gradient), slot.count()));
    total += squares.back();
  }
  if (!std::isfinite(total)) return false;
  metrics = compute::StepMetrics();
  metrics.gradient_norm = std::sqrt(total) * mean;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const double norm = std::sqrt(squares[i]) * mean;
    const double limit = options.clip * std::sqrt(static_cast<double>(slots[i].count()) /
                                                  static_cast<double>(model_parameters));
    const bool clipped = options.clip > 0 && norm > limit;
    metrics.clipped_slots += clipped ? 1 : 0;
    step_slot(kernels, slots[i], options, clipped ? mean * limit / norm : mean);
  }
  return true;
}

}  // namespace neuroshard::model
