// Judges the results of a reachability test: the class of this node, the endpoint to advertise, and an
// explanation for the user. Pure: reachability_test.h runs the test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/nat/stun_client.h"

namespace neuroshard::nat {

// From best to worst. Only an endpoint that another node has dialled counts as Public or Mapped.
enum class Reach {
  Public,       // anybody can dial it
  Mapped,       // anybody can dial it, through a port that the router opened
  Punchable,    // direct connections with nodes behind ordinary NATs, when both sides dial at the same time
  RelayedOnly,  // a relay carries every connection
};
std::string_view to_text(Reach reach);  // "public", "mapped", "punchable", "relayed only"

enum class Dialled { NotTried, Reached, NotReached };

struct MapperFinding {
  std::string name;                           // "UPnP"
  std::optional<Error> failure;               // why there is no mapping, with a code of PortMapper::map()
  std::optional<platform::Endpoint> outside;  // the port that the router opened, by its report
  Dialled dialled = Dialled::NotTried;
};

struct ReachabilityFindings {
  std::uint16_t port = 0;                    // this node's TCP port
  std::optional<platform::IpAddress> local;  // the address of the route to the internet; none: no connection
  std::optional<platform::IpAddress> gateway;  // the router
  bool stun_asked = false;
  bool udp_asked = true;  // by STUN, beside TCP
  MappingFinding udp, tcp;
  std::optional<platform::Endpoint> seen_by_peers;  // as other nodes see it
  std::optional<platform::Endpoint> direct;         // the outside address with this node's port
  Dialled direct_dialled = Dialled::NotTried;
  std::vector<MapperFinding> mappers;
};

struct ReachabilityVerdict {
  Reach reach = Reach::RelayedOnly;
  std::string through;                          // Mapped: "UPnP" or "NAT-PMP"
  std::optional<platform::Endpoint> advertise;  // Public, Mapped
  bool unverified = false;                      // a port seems to be open, but no other node could dial it
  bool second_router = false;                   // the router has no public address
  // The router has a public address, but others see another one: a VPN, or a router in front.
  bool other_way = false;
  std::string summary;             // one sentence
  std::vector<std::string> found;  // one sentence for each try
  std::string advice;              // what the user can do; empty when there is nothing to do
};
ReachabilityVerdict judge(const ReachabilityFindings& findings);

// How two nodes of these classes connect.
enum class Path { Direct, Punched, Relayed };
Path path_between(Reach a, Reach b);
std::string_view to_text(Path path);  // "direct", "punched", "relayed"

}  // namespace neuroshard::nat
