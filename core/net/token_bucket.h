// A token bucket (RFC 2697's single rate, without colours): at most `rate` per second on average and `burst`
// at once. Limits bytes that a user allows and requests that a stranger may make. Time is given, never read.
// Threads: one.
#pragma once

#include <cstdint>

#include "core/base/clock.h"

namespace neuroshard::net {

class TokenBucket {
 public:
  // rate: tokens per second, 0 = nothing ever passes. burst: what a full bucket holds. Starts full.
  TokenBucket(double rate, double burst, MonotonicTime now);

  // Takes `tokens` if they are there; else takes nothing.
  bool try_take(double tokens, MonotonicTime now);
  // Takes them in any case, into debt if need be, and says how long the caller has to wait before it
  // acts. Keeps the average exact for pieces larger than the burst. Duration::max() when the rate is 0.
  Duration take(double tokens, MonotonicTime now);
  // Like take(), but the debt after it is at most what the rate repays within `longest`: tokens beyond it are
  // forgiven.
  void take_within(double tokens, Duration longest, MonotonicTime now);
  // Puts tokens back that were taken in vain; a full bucket stays full.
  void give_back(double tokens);
  double available(MonotonicTime now);

 private:
  void refill(MonotonicTime now);

  double rate_, burst_, tokens_;
  MonotonicTime filled_;
};

}  // namespace neuroshard::net
