// The reachability test: tries every way in which others might dial this node, has another node dial it, and
// judges the result (reachability.h). Only an endpoint that was dialled is advertised.
#pragma once

#include <functional>

#include "core/nat/port_mapper.h"
#include "core/nat/reachability.h"

namespace neuroshard::nat {

// Has another node dial this endpoint: true when it reached this node, false when it did not. An error: no
// node could be asked.
using DialBack = std::function<Expected<bool>(const Io& io, const platform::Endpoint& endpoint)>;

struct ReachabilityOptions {
  std::uint16_t port = 0;  // this node's TCP port; the caller listens on it during the test
  std::vector<platform::Endpoint> stun_servers;  // two at different addresses are needed for the kind of NAT
  std::optional<platform::IpAddress> gateway;    // for the explanation only
  std::vector<PortMapper*> mappers;              // tried in this order until one is dialled; borrowed
  DialBack dial_back;                            // empty: nothing is verified
  RetransmissionRule stun_rule = nat::stun_rule;
  Duration tcp_limit = std::chrono::seconds(8);  // for each STUN server
  bool keep_mapping = true;  // keep the mapping that was dialled; a MappingKeeper takes it over
};

struct ReachabilityReport {
  ReachabilityFindings findings;
  ReachabilityVerdict verdict;
  PortMapper* mapper = nullptr;  // Mapped: the mapper whose mapping was dialled
  std::optional<PortMapping> mapping;
};

// Takes some tens of seconds when nothing answers. Cancelled; else a report, whatever failed. `progress` gets
// one line before each try.
Expected<ReachabilityReport> test_reachability(const Io& io, const ReachabilityOptions& options,
                                               const std::function<void(std::string_view)>& progress = {});

}  // namespace neuroshard::nat
