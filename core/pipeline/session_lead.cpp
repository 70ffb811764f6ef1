#include "core/pipeline/session_lead.h"

#include <utility>

namespace neuroshard::pipeline {

SessionLead::SessionLead(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
                         Route route, LeadEvents events, NextHop& hop, Duration retry)
    : executor_(surroundings.executor),
      clock_(surroundings.clock),
      key_(key),
      network_(std::move(network)),
      events_(std::move(events)),
      hop_(hop),
      retry_(retry),
      route_(std::move(route)) {
  sign_route(route_, key_, network_);
}

void SessionLead::start() {
  hop_.follow(route_, 0);
}

void SessionLead::stop() {
  stopped_ = true;
  retries_.clear();
}

void SessionLead::lost(const Lost& lost) {
  if (stopped_ || lost.position >= route_.hops.size()) return;
  // Somebody else is there by now.
  if (route_.hops[lost.position].node != lost.node) return;
  if (events_.lost) events_.lost(lost);
  lead_around(lost);
}

void SessionLead::lead_around(const Lost& lost) {
  RouteHop& hop = route_.hops[lost.position];
  const MonotonicTime now = clock_.monotonic_now();
  const auto before = replaced_at_.find(lost.position);
  const bool too_early = before != replaced_at_.end() && now - before->second < retry_;
  const auto other = too_early ? std::nullopt : events_.replace(hop.range, hop.node);
  if (!other) {
    retries_[lost.position] = executor_.post_after(retry_, [this, lost] { lead_around(lost); });
    return;
  }
  hop.node = *other;
  replaced_at_[lost.position] = now;
  ++route_.revision;
  ++replaced_;
  sign_route(route_, key_, network_);
  hop_.follow(route_, 0);
}

}  // namespace neuroshard::pipeline
