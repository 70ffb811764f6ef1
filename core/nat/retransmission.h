// When to send a datagram again: the interval doubles (RFC 8489 §6.2.1, RFC 6886 §3.1). The caller gives the
// time.
#pragma once

#include "core/base/clock.h"

namespace neuroshard::nat {

struct RetransmissionRule {
  Duration first;        // the wait after the first sending; doubles with each
  int sends;             // the most often
  Duration last_wait{};  // after the last sending; 0: the doubled one
};
// RFC 8489's RTO and Rm with five sendings instead of seven: gives up after 15.5 s, not 39.5 s, because a
// user may wait for the answer and three lost packets in a row are rare.
inline constexpr RetransmissionRule stun_rule{std::chrono::milliseconds(500), 5, std::chrono::seconds(8)};
// RFC 6886: 250 ms … 64 s, nine sendings, two minutes. A gateway answers at once or never, so this sends five
// times and gives up after 7.75 s.
inline constexpr RetransmissionRule nat_pmp_rule{std::chrono::milliseconds(250), 5, {}};

// Threads: one.
class Retransmission {
 public:
  Retransmission(const RetransmissionRule& rule, MonotonicTime now)
      : rule_(rule), wait_(rule.first), next_(now) {}

  // Whether to send now; if so, it counts.
  bool due(MonotonicTime now) {
    if (sent_ == rule_.sends || now < next_) return false;
    ++sent_;
    next_ = now + (sent_ == rule_.sends && rule_.last_wait > Duration(0) ? rule_.last_wait : wait_);
    wait_ *= 2;
    return true;
  }
  bool expired(MonotonicTime now) const { return sent_ == rule_.sends && now >= next_; }
  // The earliest time at which one of the two may change.
  MonotonicTime next() const { return next_; }
  int sent() const { return sent_; }

 private:
  RetransmissionRule rule_;
  Duration wait_;
  MonotonicTime next_;
  int sent_ = 0;
};

}  // namespace neuroshard::nat
