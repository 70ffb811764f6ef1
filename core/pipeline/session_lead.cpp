#include "core/pipeline/session_lead.h"

#include <utility>

#include "core/base/utf8.h"

namespace neuroshard::pipeline {
namespace {

constexpr std::size_t most_failures = 1024;  // remembered
constexpr double share = 0.8;                // of the changes that a stage allows, as clocks differ

}  // namespace

SessionLead::SessionLead(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
                         Route route, LeadEvents events, NextHop& hop, Duration retry)
    : executor_(surroundings.executor),
      clock_(surroundings.clock),
      key_(key),
      network_(std::move(network)),
      events_(std::move(events)),
      hop_(hop),
      retry_(retry),
      route_(std::move(route)),
      changes_(share * route_changes_per_second, share * route_changes_at_once, clock_.monotonic_now()) {
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
  ready_ = false;
  // Another node's words.
  if (events_.lost) events_.lost({lost.position, lost.node, one_line(lost.what)});
  if (failed_.size() >= most_failures) failed_.clear();
  failed_[lost.node] = clock_.monotonic_now();
  lead_around(lost.position);
}

// A node has one place on a route.
std::optional<net::NodeId> SessionLead::choose(std::uint8_t position) const {
  std::optional<net::NodeId> best;
  const auto failed_at = [this](const net::NodeId& id) {
    const auto found = failed_.find(id);
    return found == failed_.end() ? MonotonicTime::min() : found->second;
  };
  for (const net::NodeId& id : events_.holders(route_.hops[position].range)) {
    if (const auto elsewhere = route_.position_of(id); elsewhere && *elsewhere != position) continue;
    if (!best || failed_at(id) < failed_at(*best)) best = id;
  }
  if (best && failed_at(*best) != MonotonicTime::min() && clock_.monotonic_now() - failed_at(*best) < retry_)
    return std::nullopt;
  return best;
}

void SessionLead::lead_around(std::uint8_t position) {
  const auto other = choose(position);
  if (!other || !changes_.try_take(1, clock_.monotonic_now())) {
    retries_[position] = executor_.post_after(retry_, [this, position] { lead_around(position); });
    return;
  }
  net::NodeId& node = route_.hops[position].node;
  if (node != *other) ++replaced_;  // else the same one is asked again
  node = *other;
  ++route_.revision;
  sign_route(route_, key_, network_);
  hop_.follow(route_, 0);
}

}  // namespace neuroshard::pipeline
