#include "core/model/adamw.h"

#include <cmath>

#include "core/base/check.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

AdamwScalars scalars_of(const compute::StepOptions& options, double scale, bool decay) {
  const auto step = static_cast<double>(options.step);
  AdamwScalars scalars{};
  scalars.scale = static_cast<float>(scale);
  scalars.keep = static_cast<float>(decay ? 1.0 - options.learning_rate * options.weight_decay : 1.0);
  scalars.step_size = static_cast<float>(options.learning_rate / (1.0 - std::pow(options.beta1, step)));
  scalars.beta1 = static_cast<float>(options.beta1);
  scalars.beta2 = static_cast<float>(options.beta2);
  scalars.root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, step)));
  scalars.epsilon = static_cast<float>(options.epsilon);
  return scalars;
}

// Neighbours with the same decay are one range, unless packed copies follow from them.
void step_slot(const Kernels& kernels, SlotState& slot, const compute::StepOptions& options, double scale) {
  auto range = slot.packed.begin();
  for (std::size_t i = 0; i < slot.layout.size();) {
    const compute::ParameterInfo& first = slot.layout[i];
    const bool packed = range != slot.packed.end() && range->first == i;
    const std::size_t end = packed                       ? i + range->count
                            : range != slot.packed.end() ? range->first
                                                         : slot.layout.size();
    std::uint64_t count = 0;
    while (i < end && slot.layout[i].decay == first.decay) count += slot.layout[i++].count;
    float* const parameters = floats(slot.parameters) + first.offset;
    float* const gradient = floats(slot.gradient) + first.offset;
    float* const moment1 = floats(slot.moment1) + first.offset;
    float* const moment2 = floats(slot.moment2) + first.offset;
    const AdamwScalars scalars = scalars_of(options, scale, first.decay);
    if (packed) {
      NS_CHECK(i == end);  // a matrix decays as a whole
      const PackedWeight& copies = *(range++)->packed;
      kernels.adamw_packed(parameters, gradient, moment1, moment2, copies.rows, copies.columns, scalars,
                           bf16s(copies.forward), bf16s(copies.backward));
    } else {
      kernels.adamw(parameters, gradient, moment1, moment2, static_cast<std::int64_t>(count), scalars);
    }
  }
}

}  // namespace

bool adamw_step(const Kernels& kernels, std::vector<SlotState>& slots,
                const std::vector<compute::SlotStep>& steps, std::uint64_t model_parameters,
                compute::StepMetrics& metrics) {
  std::vector<double> norms;  // after division by tokens
  double total = 0;
  for (const compute::SlotStep& step : steps) {
    const SlotState& slot = slots[step.slot];
    const double squares = kernels.sum_of_squares(floats(slot.gradient), slot.count());
    norms.push_back(std::sqrt(squares) * (1.0 / static_cast<double>(step.options.tokens)));
    total += norms.back() * norms.back();
  }
  if (!std::isfinite(total)) return false;
  metrics = compute::StepMetrics();
  metrics.gradient_norm = std::sqrt(total);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const compute::StepOptions& options = steps[i].options;
    SlotState& slot = slots[steps[i].slot];
    const double mean = 1.0 / static_cast<double>(options.tokens);
    const double limit =
        options.clip * std::sqrt(static_cast<double>(slot.count()) / static_cast<double>(model_parameters));
    const bool clipped = options.clip > 0 && norms[i] > limit;
    metrics.clipped_slots += clipped ? 1 : 0;
    step_slot(kernels, slot, options, clipped ? mean * limit / norms[i] : mean);
  }
  return true;
}

}  // namespace neuroshard::model
