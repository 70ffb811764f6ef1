// Who leads a session: holds its route, and names another holder when a hop is lost. The driver of training and the one
// of a text lead in the same way.
//
// Holders that all refuse are asked no more often than every `retry`. Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/pipeline/next_hop.h"

namespace neuroshard::pipeline {

struct LeadEvents {
  // Another holder of the range, or the same node again: `lost` is the one that does not answer. Nothing: none is
  // known now.
  std::function<std::optional<net::NodeId>(const StageRange& range, const net::NodeId& lost)> replace;
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

  const Route& route() const { return route_; }
  std::uint64_t replaced() const { return replaced_; }  // hops

 private:
  void lead_around(const Lost& lost);

  Executor& executor_;
  const Clock& clock_;
  const crypto::KeyPair& key_;
  const Bytes network_;
  const LeadEvents events_;
  NextHop& hop_;
  const Duration retry_;
  Route route_;
  bool stopped_ = false;
  std::uint64_t replaced_ = 0;
  // By position.
  std::map<std::uint8_t, MonotonicTime> replaced_at_;
  std::map<std::uint8_t, std::unique_ptr<TimerHandle>> retries_;
};

}  // namespace neuroshard::pipeline
