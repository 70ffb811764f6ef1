#include "core/nat/reachability.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::IpAddress;

std::optional<IpAddress> seen_from_outside(const ReachabilityFindings& findings) {
  for (const MappingFinding* finding : {&findings.udp, &findings.tcp})
    if (finding->outside) return finding->outside->ip;
  if (findings.seen_by_peers) return findings.seen_by_peers->ip;
  return std::nullopt;
}

// Others see this computer at another address of the same family. A router maps ports of IPv4 only.
bool seen_elsewhere(const MapperFinding& mapper, const std::optional<IpAddress>& seen) {
  return mapper.outside && seen && seen->is_v4() == mapper.outside->ip.is_v4() && *seen != mapper.outside->ip;
}

// The router's own outside address is not the one that others see.
bool behind_another(const MapperFinding& mapper, const std::optional<IpAddress>& seen) {
  return mapper.outside && (!platform::globally_routable(mapper.outside->ip) || seen_elsewhere(mapper, seen));
}

void say_stun(const ReachabilityFindings& findings, ReachabilityVerdict& verdict) {
  if (findings.seen_by_peers) {
    const platform::IpAddress& seen = findings.seen_by_peers->ip;
    verdict.found.push_back(findings.local == seen
                                ? fmt::format("Other nodes see it at {}, its own address.", to_text(seen))
                                : fmt::format("Other nodes see it at {}.", to_text(seen)));
  }
  if (!findings.stun_asked && findings.seen_by_peers) return;
  if (!findings.stun_asked) {
    verdict.found.push_back("No STUN server was asked, so the outside address is not known.");
    return;
  }
  const auto words = [](const char* way, const MappingFinding& finding) -> std::string {
    switch (finding.mapping) {
      case Mapping::NoAnswer: return fmt::format("{}: no STUN server answered.", way);
      case Mapping::None:
        return fmt::format("{}: seen from outside as {}, this computer's own address.", way,
                           to_text(*finding.outside));
      case Mapping::OneServer:
        return fmt::format("{}: seen from outside as {}; one answer can't tell the kind of NAT.", way,
                           to_text(*finding.outside));
      case Mapping::EndpointIndependent:
        return fmt::format("{}: seen from outside as {}, with the same port by each server.", way,
                           to_text(*finding.outside));
      case Mapping::EndpointDependent:
        return fmt::format("{}: seen from outside as {}, but with another port by each (a symmetric NAT).",
                           way, to_text(*finding.outside));
    }
    return {};
  };
  if (findings.udp_asked) verdict.found.push_back(words("UDP", findings.udp));
  verdict.found.push_back(words("TCP", findings.tcp));
}

void say_tries(const ReachabilityFindings& findings, ReachabilityVerdict& verdict) {
  if (findings.direct && findings.direct_dialled == Dialled::Reached)
    verdict.found.push_back(fmt::format("Dialled from outside: {} was reached.", to_text(*findings.direct)));
  if (findings.direct && findings.direct_dialled == Dialled::NotReached)
    verdict.found.push_back(
        fmt::format("Dialled from outside: {} was not reached.", to_text(*findings.direct)));
  const auto seen = seen_from_outside(findings);
  for (const MapperFinding& mapper : findings.mappers) {
    if (mapper.failure) {
      verdict.found.push_back(fmt::format("{}: {}.", mapper.name, mapper.failure->message));
      continue;
    }
    if (!mapper.outside) continue;
    std::string words = fmt::format("{}: the router opened {}", mapper.name, to_text(*mapper.outside));
    if (behind_another(mapper, seen)) {
      words += platform::globally_routable(mapper.outside->ip)
                   ? fmt::format(
                         ", but other nodes see {}: a VPN has another way to the internet, or "
                         "there is another router in front",
                         to_text(*seen))
                   : ", which is not a public address: there is another router in front";
    } else if (mapper.dialled == Dialled::Reached) {
      words += ", and it was reached from outside";
    } else if (mapper.dialled == Dialled::NotReached) {
      words += ", but it was not reached from outside";
    } else {
      words += "; no other node could dial it to check";
    }
    verdict.found.push_back(words + ".");
  }
}

std::string router_of(const ReachabilityFindings& findings) {
  return findings.gateway ? fmt::format("your router (http://{})", to_text(*findings.gateway))
                          : "your router";
}

// Which port to forward where, in the terms of router settings.
std::string forward(const ReachabilityFindings& findings) {
  const std::string here = findings.local ? to_text(*findings.local) : "this computer";
  return fmt::format("in the settings of {}, forward TCP port {} to {}", router_of(findings), findings.port,
                     here);
}

// For a router that opened no port, by what it answered.
std::string open_by_hand(const ReachabilityFindings& findings) {
  const auto failed = [&](ErrorCode code) {
    return std::any_of(findings.mappers.begin(), findings.mappers.end(),
                       [&](const MapperFinding& m) { return m.failure && m.failure->code == code; });
  };
  const std::string by_hand = forward(findings);
  if (failed(ErrorCode::Denied))
    return fmt::format(
        "To be reachable directly, allow this computer to open ports by UPnP or NAT-PMP in your "
        "router, or {}.",
        by_hand);
  if (failed(ErrorCode::Corrupt))
    return fmt::format("To be reachable directly, restart your router, or {}.", by_hand);
  if (failed(ErrorCode::Exhausted)) return fmt::format("To be reachable directly, {}.", by_hand);
  return fmt::format("To be reachable directly, switch on UPnP or NAT-PMP in your router, or {}.", by_hand);
}

void advise(const ReachabilityFindings& findings, ReachabilityVerdict& verdict) {
  const bool own_address = findings.local && platform::globally_routable(*findings.local);
  if (!findings.local) {
    verdict.advice = "Check the network connection: this computer has no way to the internet.";
  } else if (own_address) {
    verdict.advice = fmt::format(
        "Allow incoming TCP connections to port {} in this computer's firewall and in that of "
        "your provider or network.",
        findings.port);
  } else if (findings.seen_by_peers && !findings.seen_by_peers->ip.is_v4()) {
    verdict.advice = fmt::format(
        "To be reachable directly, in the settings of {}, allow incoming TCP connections to port {} of this "
        "computer's IPv6 address {}; allow them in this computer's firewall, too.",
        router_of(findings), findings.port, to_text(findings.seen_by_peers->ip));
  } else if (verdict.second_router) {
    verdict.advice = fmt::format(
        "To be reachable directly, ask your internet provider for a public IPv4 address, or, if "
        "both routers are yours, forward TCP port {0} in the outer one to the inner one and {1}.",
        findings.port, forward(findings));
  } else if (verdict.other_way) {
    verdict.advice = fmt::format(
        "If this computer uses a VPN, have the VPN forward TCP port {0}, or let this program's "
        "connections go around it. If there is another router in front, forward TCP port {0} in it "
        "to the inner one.",
        findings.port);
  } else {
    const bool mapped_in_vain =
        std::any_of(findings.mappers.begin(), findings.mappers.end(),
                    [](const MapperFinding& m) { return m.dialled == Dialled::NotReached; });
    verdict.advice =
        mapped_in_vain
            ? fmt::format(
                  "Something between the router and this computer drops incoming connections: allow TCP port "
                  "{} in "
                  "this computer's firewall.",
                  findings.port)
            : open_by_hand(findings);
  }
  if (findings.stun_asked && findings.udp_asked && findings.udp.mapping == Mapping::NoAnswer &&
      findings.local)
    verdict.advice +=
        " This network seems to block UDP; nothing needs it, but it is a sign of a strict firewall.";
}

}  // namespace

std::string_view to_text(Reach reach) {
  switch (reach) {
    case Reach::Public: return "public";
    case Reach::Mapped: return "mapped";
    case Reach::Punchable: return "punchable";
    case Reach::RelayedOnly: return "relayed only";
  }
  return "?";
}

ReachabilityVerdict judge(const ReachabilityFindings& findings) {
  ReachabilityVerdict verdict;
  const auto seen = seen_from_outside(findings);
  say_stun(findings, verdict);
  say_tries(findings, verdict);
  for (const MapperFinding& mapper : findings.mappers) {
    const bool no_address = mapper.failure && mapper.failure->code == ErrorCode::Unavailable;
    const bool not_public = mapper.outside && !platform::globally_routable(mapper.outside->ip);
    verdict.second_router = verdict.second_router || no_address || not_public;
    verdict.other_way = verdict.other_way || (!not_public && behind_another(mapper, seen));
    verdict.unverified = verdict.unverified || (mapper.outside && !behind_another(mapper, seen) &&
                                                mapper.dialled == Dialled::NotTried);
  }
  if (findings.direct && findings.direct_dialled == Dialled::Reached) {
    verdict.reach = Reach::Public;
    verdict.advertise = findings.direct;
    verdict.summary = fmt::format("Every node can reach this computer at {}.", to_text(*findings.direct));
    verdict.unverified = false;
    return verdict;
  }
  for (const MapperFinding& mapper : findings.mappers) {
    if (!mapper.outside || mapper.dialled != Dialled::Reached) continue;
    verdict.reach = Reach::Mapped;
    verdict.through = mapper.name;
    verdict.advertise = mapper.outside;
    verdict.unverified = false;
    verdict.summary =
        fmt::format("Every node can reach this computer at {}, a port that the router opened by {}.",
                    to_text(*mapper.outside), mapper.name);
    return verdict;
  }
  verdict.unverified =
      verdict.unverified || (findings.direct && findings.direct_dialled == Dialled::NotTried &&
                             findings.local && platform::globally_routable(*findings.local));
  const bool same_for_all =
      findings.tcp.mapping == Mapping::EndpointIndependent || findings.tcp.mapping == Mapping::None;
  verdict.reach = same_for_all ? Reach::Punchable : Reach::RelayedOnly;
  verdict.summary =
      same_for_all
          ? "This computer can't be dialled, but it can have direct connections with nodes that are public "
            "or behind an ordinary router; others go through a relay."
          : "This computer can't be dialled: it dials public nodes directly, and other nodes reach it "
            "through a relay.";
  if (!findings.stun_asked && !findings.direct) {
    verdict.summary =
        "Nothing shows that this computer can be dialled, and without a STUN server little can be found out; "
        "until it is known, it counts as reachable through a relay only.";
  }
  if (verdict.unverified) {
    verdict.summary =
        "A port seems to be open, but no other node could dial it to check; until one has, this "
        "computer counts as not reachable.";
  }
  advise(findings, verdict);
  return verdict;
}

Path path_between(Reach a, Reach b) {
  const auto dialable = [](Reach reach) { return reach == Reach::Public || reach == Reach::Mapped; };
  if (dialable(a) || dialable(b)) return Path::Direct;
  return a == Reach::Punchable && b == Reach::Punchable ? Path::Punched : Path::Relayed;
}

std::string_view to_text(Path path) {
  switch (path) {
    case Path::Direct: return "direct";
    case Path::Punched: return "punched";
    case Path::Relayed: return "relayed";
  }
  return "?";
}

}  // namespace neuroshard::nat
