#include "core/nat/reachability_test.h"

#include <fmt/format.h>

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::IpAddress;

// A remote address for a look-up in the system's routing table; nothing is sent there.
const Endpoint far_away{IpAddress::v4(1, 1, 1, 1), 53};

Dialled dial(const Io& io, const ReachabilityOptions& options, const Endpoint& endpoint) {
  if (!options.dial_back) return Dialled::NotTried;
  const auto reached = options.dial_back(io, endpoint);
  if (!reached.ok()) return Dialled::NotTried;
  return *reached ? Dialled::Reached : Dialled::NotReached;
}

// True when the mapping was dialled.
bool try_mapper(const Io& io, const ReachabilityOptions& options, PortMapper& mapper,
                ReachabilityReport& report) {
  MapperFinding finding;
  finding.name = mapper.name();
  const auto mapping = mapper.map(io, options.port, options.port, mapping_lease);
  if (!mapping.ok()) {
    finding.failure = mapping.error();
  } else {
    const auto state = mapper.check(io, *mapping);
    if (state.ok()) {
      finding.outside = Endpoint{state->outside, mapping->outside_port};
      if (platform::globally_routable(state->outside)) finding.dialled = dial(io, options, *finding.outside);
    } else {
      finding.failure = state.error();
    }
    const bool keep = finding.dialled == Dialled::Reached && options.keep_mapping;
    if (keep) {
      report.mapper = &mapper;
      report.mapping = *mapping;
    } else {
      (void)mapper.unmap(io, *mapping);  // if the router refuses, the mapping ends with its lease
    }
  }
  const bool reached = finding.dialled == Dialled::Reached;
  report.findings.mappers.push_back(std::move(finding));
  return reached;
}

}  // namespace

Expected<ReachabilityReport> test_reachability(const Io& io, const ReachabilityOptions& options,
                                               const std::function<void(std::string_view)>& progress) {
  const auto say = [&](const std::string& words) {
    if (progress) progress(words);
  };
  ReachabilityReport report;
  ReachabilityFindings& findings = report.findings;
  findings.port = options.port;
  findings.gateway = options.gateway;
  const auto local = platform::source_address_towards(
      options.stun_servers.empty() ? far_away : options.stun_servers.front());
  if (local.ok()) findings.local = *local;
  findings.stun_asked = !options.stun_servers.empty();
  if (findings.local && findings.stun_asked) {
    say("Asking for the outside address of this computer, over UDP");
    NS_ASSIGN_OR_RETURN(findings.udp, find_mapping_udp(io, options.stun_servers, 0, options.stun_rule));
    say("The same over TCP");
    NS_ASSIGN_OR_RETURN(findings.tcp, find_mapping_tcp(io, options.stun_servers, 0, options.tcp_limit));
  }
  std::optional<IpAddress> outside = findings.local;
  if (findings.udp.outside) outside = findings.udp.outside->ip;
  if (findings.tcp.outside) outside = findings.tcp.outside->ip;
  if (outside && platform::globally_routable(*outside)) {
    findings.direct = Endpoint{*outside, options.port};
    say(fmt::format("Having {} dialled from outside", to_text(*findings.direct)));
    findings.direct_dialled = dial(io, options, *findings.direct);
  }
  if (findings.local && findings.direct_dialled != Dialled::Reached) {
    for (PortMapper* mapper : options.mappers) {
      if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
      say(fmt::format("Asking the router to open port {} by {}", options.port, mapper->name()));
      if (try_mapper(io, options, *mapper, report)) break;
    }
  }
  if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
  report.verdict = judge(findings);
  return report;
}

}  // namespace neuroshard::nat
