#include "core/net/holder_estimate.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::net {
namespace {

constexpr double keep = 0.9;       // of older calls' weight, with each new one
constexpr double forgive = 0.7;    // of the weight of failures, with each answer: the holder has recovered
constexpr double half_life = 300;  // seconds, of what was measured
constexpr double least_success = 0.05;     // keeps the estimate of a failing holder finite
constexpr double prior_weight = 0.5;       // in calls
constexpr double four_deviations = 4;      // as RFC 6298 waits for an acknowledgement
constexpr double unknown_deviation = 0.5;  // of the expected time

double seconds_of(Duration d) {
  return std::chrono::duration<double>(d).count();
}
Duration duration_of(double seconds) {
  constexpr double most = 24 * 3600;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, most)));
}

}  // namespace

double HolderEstimate::fade(MonotonicTime now) const {
  return std::exp2(-std::max(0.0, seconds_of(now - last_)) / half_life);
}

void HolderEstimate::forget(MonotonicTime now) {
  const double f = fade(now);
  for (double* sum : {&n_, &b_, &t_, &bb_, &bt_, &successes_, &failures_, &failed_seconds_}) *sum *= f;
  last_ = now;
}

void HolderEstimate::answered(std::size_t bytes, std::size_t together, Duration took, MonotonicTime now) {
  const double x = static_cast<double>(bytes) * static_cast<double>(std::max<std::size_t>(together, 1));
  const double y = seconds_of(took);
  if (n_ > 0) {
    const Line before = line({}, now);
    deviation_ += (std::abs(y - before.latency - x * before.per_byte) - deviation_) / 4;
  } else {
    deviation_ = y * unknown_deviation;
  }
  forget(now);
  for (double* sum : {&n_, &b_, &t_, &bb_, &bt_, &successes_, &failures_, &failed_seconds_}) *sum *= keep;
  failures_ *= forgive;
  failed_seconds_ *= forgive;
  n_ += 1;
  b_ += x;
  t_ += y;
  bb_ += x * x;
  bt_ += x * y;
  successes_ += 1;
}

void HolderEstimate::failed(Duration took, MonotonicTime now) {
  forget(now);
  for (double* sum : {&successes_, &failures_, &failed_seconds_}) *sum *= keep;
  failures_ += 1;
  failed_seconds_ += seconds_of(took);
}

// The prior is two calls of little weight on its own line, one without bytes and one with a second's worth:
// measurements soon outweigh it, and where all calls had one size the slope is the prior's.
HolderEstimate::Line HolderEstimate::line(const HolderPrior& prior, MonotonicTime now) const {
  const double f = fade(now), w = prior_weight / 2 / (1 + n_ * f);
  const double latency = seconds_of(prior.latency), far = prior.bytes_per_second;
  const double n = n_ * f + 2 * w, b = b_ * f + w * far, t = t_ * f + w * latency + w * (latency + 1);
  const double bb = bb_ * f + w * far * far, bt = bt_ * f + w * far * (latency + 1);
  const double spread = bb - b * b / n;
  const double slope = spread > 0 ? std::max(0.0, (bt - b * t / n) / spread) : 1 / far;
  return {std::max(0.0, (t - b * slope) / n), slope};
}

double HolderEstimate::seconds(std::size_t bytes, std::size_t together, const HolderPrior& prior,
                               MonotonicTime now) const {
  const Line at = line(prior, now);
  return at.latency +
         at.per_byte * static_cast<double>(bytes) * static_cast<double>(std::max<std::size_t>(together, 1));
}

Duration HolderEstimate::expected(std::size_t bytes, std::size_t together, const HolderPrior& prior,
                                  MonotonicTime now) const {
  const double p = std::max(success(now), least_success);
  const double failing = failures_ > 0 ? failed_seconds_ / failures_ : 0;
  return duration_of(seconds(bytes, together, prior, now) + (1 - p) / p * failing);
}

Duration HolderEstimate::late(std::size_t bytes, std::size_t together, const HolderPrior& prior,
                              MonotonicTime now) const {
  const double time = seconds(bytes, together, prior, now);
  return duration_of(time + four_deviations * (n_ > 0 ? deviation_ : time * unknown_deviation));
}

Duration HolderEstimate::latency(const HolderPrior& prior, MonotonicTime now) const {
  return duration_of(line(prior, now).latency);
}

double HolderEstimate::bytes_per_second(const HolderPrior& prior, MonotonicTime now) const {
  constexpr double none = 1e-12;  // seconds a byte; faster than any line
  return 1 / std::max(line(prior, now).per_byte, none);
}

double HolderEstimate::success(MonotonicTime now) const {
  const double f = fade(now);
  return (successes_ * f + prior_weight) / ((successes_ + failures_) * f + prior_weight);
}

}  // namespace neuroshard::net
