// Leads a session: holds its route, and names another holder when a hop is lost. The driver of training and the one
// of a text lead in the same way.
//
// The holder whose last failure is longest ago comes next, and each is asked no more often than every `retry`. The route changes
// no more often than the stages allow, however many holders fail. Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/net/token_bucket.h"
#include "core/pipeline/next_hop.h"

namespace neuroshard::pipeline {

struct LeadEvents {
  // The nodes that hold this range, so far as is known; also those that were lost.
  std::function<std::vector<net::NodeId>(const StageRange& range)> holders;
  // For the log and the pages. Null: nobody listens.
  std::function<void(const Lost&)> lost;
};

class SessionLead {
 public:
  // route: checked, without driver and signature. key and hop outlive the lead.
  SessionLead(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
              LeadEvents events, NextHop& hop, Duration retry);

  void start();
  void stop();  // nothing is replaced any more
  void lost(const Lost& lost);
  // All hops follow the present route.
  void ready() { ready_ = true; }
  bool is_ready() const { return ready_; }

  const Route& route() const { return route_; }
  std::uint64_t replaced() const { return replaced_; }  // hops

 private:
  void lead_around(std::uint8_t position);
  std::optional<net::NodeId> choose(std::uint8_t position) const;

  Executor& executor_;
  const Clock& clock_;
  const crypto::KeyPair& key_;
  const Bytes network_;
  const LeadEvents events_;
  NextHop& hop_;
  const Duration retry_;
  Route route_;
  bool stopped_ = false, ready_ = false;
  std::uint64_t replaced_ = 0;
  std::unordered_map<net::NodeId, MonotonicTime, net::NodeIdHash> failed_;  // when last
  std::map<std::uint8_t, std::unique_ptr<TimerHandle>> retries_;            // by position
  net::TokenBucket changes_;                                                // of the route
};

}  // namespace neuroshard::pipeline
