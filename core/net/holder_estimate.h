// Estimates how long the next call to one holder of a slot will take. The model is a line through the calls
// so far: time = latency + bytes / rate, by least squares over sums that fade. Bytes count once for each call
// that was in flight with them, because the calls of one holder share its line and its processor. Failures
// raise the estimate: the time of a failed call is added as often as one is expected before a success.
// Without measurements the priors hold; they return as the measurements fade. slot_router.h is its only user.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/clock.h"

namespace neuroshard::net {

// Assumed of a holder before it has answered.
struct HolderPrior {
  Duration latency = std::chrono::milliseconds(100);
  double bytes_per_second = 1 << 20;
};

class HolderEstimate {
 public:
  // `together`: calls to this holder in flight when it was made, including itself.
  void answered(std::size_t bytes, std::size_t together, Duration took, MonotonicTime now);
  void failed(Duration took, MonotonicTime now);

  // Expected time until a call made now is answered, including failures and second tries.
  Duration expected(std::size_t bytes, std::size_t together, const HolderPrior& prior,
                    MonotonicTime now) const;
  // After this time at most one call in twenty still has no answer; asking a second holder is then worth it.
  Duration late(std::size_t bytes, std::size_t together, const HolderPrior& prior, MonotonicTime now) const;

  Duration latency(const HolderPrior& prior, MonotonicTime now) const;
  double bytes_per_second(const HolderPrior& prior, MonotonicTime now) const;
  double success(MonotonicTime now) const;  // share of calls, 0 … 1

 private:
  struct Line {  // seconds = latency + bytes * per_byte
    double latency, per_byte;
  };
  double fade(MonotonicTime now) const;  // of what was measured until last_
  Line line(const HolderPrior& prior, MonotonicTime now) const;
  double seconds(std::size_t bytes, std::size_t together, const HolderPrior& prior, MonotonicTime now) const;
  void forget(MonotonicTime now);

  // Weighted sums over answered calls: weight, bytes, seconds, bytes², bytes · seconds.
  double n_ = 0, b_ = 0, t_ = 0, bb_ = 0, bt_ = 0;
  double deviation_ = 0;  // of calls from the line, mean of magnitudes, seconds
  double successes_ = 0, failures_ = 0, failed_seconds_ = 0;  // fading likewise
  MonotonicTime last_{};
};

}  // namespace neuroshard::net
