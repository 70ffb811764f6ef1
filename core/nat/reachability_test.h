// The reachability test: tries every way in which this node might be dialled, has somebody outside dial it,
// and judges (reachability.h). Only what was dialled is to be advertised.
#pragma once

#include <functional>

#include "core/nat/port_mapper.h"
#include "core/nat/reachability.h"

namespace neuroshard::nat {

// Has somebody outside dial this endpoint: true when it got through to this node, false when it did not. An
// error: nobody could be asked.
using DialBack = std::function<Expected<bool>(const Io& io, const platform::Endpoint& endpoint)>;

struct ReachabilityOptions {
  std::uint16_t port = 0;  // this node's TCP port; somebody listens on it while the test runs
  std::vector<platform::Endpoint> stun_servers;  // two, at different addresses, tell the kind of NAT
  std::optional<platform::IpAddress> gateway;    // for the words only
  std::vector<PortMapper*> mappers;              // tried in this order until one is dialled; borrowed
  DialBack dial_back;                            // may be empty: nothing is verified then
  RetransmissionRule stun_rule = nat::stun_rule;
  Duration tcp_limit = std::chrono::seconds(8);  // for each STUN server
  bool keep_mapping = true;  // leave the mapping that was dialled in place, for a MappingKeeper to take over
};

struct ReachabilityReport {
  ReachabilityFindings findings;
  ReachabilityVerdict verdict;
  PortMapper* mapper = nullptr;  // Mapped: whose mapping was dialled
  std::optional<PortMapping> mapping;
};

// Takes up to some tens of seconds where nothing answers. Cancelled; else a report, whatever failed.
// `progress` gets one line before each try.
Expected<ReachabilityReport> test_reachability(const Io& io, const ReachabilityOptions& options,
                                               const std::function<void(std::string_view)>& progress = {});

}  // namespace neuroshard::nat
