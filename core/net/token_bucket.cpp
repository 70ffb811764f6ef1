#include "core/net/token_bucket.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace neuroshard::net {

TokenBucket::TokenBucket(double rate, double burst, MonotonicTime now)
    : rate_(rate), burst_(burst), tokens_(burst), filled_(now) {
  NS_CHECK(rate >= 0 && burst >= 0 && std::isfinite(rate) && std::isfinite(burst));
}

void TokenBucket::refill(MonotonicTime now) {
  if (now <= filled_) return;
  tokens_ = std::min(burst_, tokens_ + rate_ * to_seconds(now - filled_));
  filled_ = now;
}

bool TokenBucket::try_take(double tokens, MonotonicTime now) {
  refill(now);
  if (tokens > tokens_) return false;
  tokens_ -= tokens;
  return true;
}

Duration TokenBucket::take(double tokens, MonotonicTime now) {
  refill(now);
  tokens_ -= tokens;
  if (tokens_ >= 0) return Duration(0);
  if (rate_ <= 0) return Duration::max();
  const double seconds = -tokens_ / rate_;
  constexpr double longest = 1e9;  // about 32 years; keeps the conversion in range
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, longest)));
}

void TokenBucket::take_within(double tokens, Duration longest, MonotonicTime now) {
  refill(now);
  tokens_ -= std::clamp(tokens_ + rate_ * to_seconds(longest), 0.0, tokens);
}

void TokenBucket::give_back(double tokens) {
  tokens_ = std::min(burst_, tokens_ + tokens);
}

double TokenBucket::available(MonotonicTime now) {
  refill(now);
  return tokens_;
}

}  // namespace neuroshard::net
