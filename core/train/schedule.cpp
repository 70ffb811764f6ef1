#include "core/train/schedule.h"

#include <cmath>

namespace neuroshard::train {
namespace {
constexpr double pi = 3.14159265358979323846;
}

Expected<void> validate(const Schedule& schedule) {
  if (!std::isfinite(schedule.peak) || schedule.peak <= 0) {
    return make_error(ErrorCode::InvalidArgument,
                      "The peak learning rate must be a number above 0, e.g. 6e-4.");
  }
  if (!std::isfinite(schedule.floor) || schedule.floor < 0 || schedule.floor > 1) {
    return make_error(
        ErrorCode::InvalidArgument,
        "The learning rate's floor is a share of its peak and must lie between 0 and 1, e.g. 0.1.");
  }
  return {};
}

double learning_rate(const Schedule& schedule, std::uint64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.peak * (static_cast<double>(step) / static_cast<double>(schedule.warmup_steps));
  }
  if (step >= schedule.decay_steps) return schedule.peak * schedule.floor;
  const double progress = static_cast<double>(step - schedule.warmup_steps) /
                          static_cast<double>(schedule.decay_steps - schedule.warmup_steps);
  const double cosine = 0.5 * (1.0 + std::cos(pi * progress));
  return schedule.peak * (schedule.floor + (1.0 - schedule.floor) * cosine);
}

double rewarm_factor(std::uint64_t steps_since_arrival) {
  if (steps_since_arrival == 0 || steps_since_arrival >= rewarm_steps) return 1.0;
  return static_cast<double>(steps_since_arrival) / rewarm_steps;
}

}  // namespace neuroshard::train
