// What the network's commands share: a node's key, its executor, the transport, and (when asked for) its part
// in a network, all with one life.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/node/command.h"
#include "app/node/name_lookup.h"
#include "core/nat/relay_role.h"
#include "core/nat/router_port.h"
#include "core/nat/tunnels.h"
#include "core/net/ban_list.h"
#include "core/net/conduct.h"
#include "core/net/limited_transport.h"
#include "core/net/refusals.h"
#include "core/rpc/grpc_transport.h"
#include "core/swarm/member.h"

namespace neuroshard::app {

struct PeerHostOptions {
  std::optional<platform::Endpoint> listen;  // nothing: it only dials
  bool member = true;                        // takes part; else it only has connections
  bool open_port = true;                     // a member asks the router to, unless it is on one LAN
  bool relay = true;                         // a member relays for others, once it is reached
  std::optional<nat::TurnAccount> turn;      // at swarm.turn_server
  net::TrafficLimits traffic;                // of a member
  net::TrafficCap* traffic_cap = nullptr;    // of a member; outlives the host
  Bytes bans;                  // of an earlier run (net::BanList); what can't be read is not used
  swarm::MemberOptions swarm;  // the port comes from `listen`
};

class PeerHost {
 public:
  // Errors: what load_module and make_grpc_transport say.
  static Expected<std::unique_ptr<PeerHost>> start(crypto::KeyPair key, const Clock& clock,
                                                   crypto::Entropy& entropy, Logger& logger,
                                                   PeerHostOptions options);
  ~PeerHost();
  PeerHost(const PeerHost&) = delete;
  PeerHost& operator=(const PeerHost&) = delete;

  platform::Endpoint endpoint() const { return endpoint_; }
  net::NodeId id() const { return id_; }
  const net::RefusalCounts& refusals() const { return refusals_; }
  net::BanList& bans() { return bans_; }
  net::Conduct& conduct() { return *conduct_; }

  // Everything below and what it leads to is the executor's: runs `task` there and waits for its end.
  void run(const std::function<void()>& task);
  swarm::Member& member() { return *member_; }
  net::PeerTransport& transport() { return *transport_; }
  // Null: a member that does not listen.
  nat::Tunnels* tunnels() { return tunnels_.get(); }
  Executor& executor() { return *executor_; }
  const Clock& clock() const { return clock_; }
  const crypto::KeyPair& key() const { return key_; }
  const net::LineSpeed* line() const { return line_.get(); }  // null: of no member

 private:
  PeerHost(crypto::KeyPair key, const Clock& clock, crypto::Entropy& entropy, Logger& logger);
  Expected<void> open(const PeerHostOptions& options, std::uint64_t seed);
  Expected<void> open_ways(const PeerHostOptions& options);
  Expected<void> open_tunnels(const PeerHostOptions& options);
  bool listens_everywhere() const;

  const crypto::KeyPair key_;
  const net::NodeId id_;
  const Clock& clock_;
  crypto::Entropy& entropy_;
  Logger& logger_;
  net::BanList bans_;
  std::unique_ptr<net::Conduct> conduct_;
  net::RefusalCounts refusals_;
  platform::Endpoint endpoint_;
  std::unique_ptr<nat::RelayRole> relay_;
  std::unique_ptr<rpc::GrpcTransport> transport_;
  std::unique_ptr<net::LineSpeed> line_;  // of a member
  std::unique_ptr<net::TrafficMeter> meter_;
  std::unique_ptr<net::LimitedTransport> limited_;
  std::unique_ptr<nat::Tunnels> tunnels_;
  std::unique_ptr<nat::RouterPort> router_;
  std::unique_ptr<swarm::Member> member_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<NameLookup> names_;
};

// UPnP, and NAT-PMP where there is a gateway.
std::vector<std::unique_ptr<nat::PortMapper>> ways_to_open_ports(
    const std::optional<platform::IpAddress>& gateway);

// "192.0.2.1:9000", "[2001:db8::1]:9000" or "host.example.org:9000" (looked up at once; the first address
// counts), with "ID@" before it when the node there has to be this one.
Expected<net::Dial> parse_dial(const std::string& text);
Expected<std::vector<net::Dial>> parse_dials(const std::vector<std::string>& texts);
// The same for a member, which looks names up itself, again and again.
Expected<swarm::FirstPeer> parse_first_peer(const std::string& text);

}  // namespace neuroshard::app
