// The network side of a process: a node's key, an executor, the transport and, for a member, its place in the
// network. All of them start and end together.
//
// Threads: start(), run() and the destructor belong to the owner, never to the host's executor. Everything
// that says "the executor's" runs inside run() or a task of executor().
// Errors: only start() fails.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nat/relay_role.h"
#include "core/nat/router_port.h"
#include "core/nat/tunnels.h"
#include "core/net/ban_list.h"
#include "core/net/conduct.h"
#include "core/net/limited_transport.h"
#include "core/net/peer_ranks.h"
#include "core/net/refusals.h"
#include "core/platform/process/open_files.h"
#include "core/rpc/grpc_transport.h"
#include "core/runtime/connection_room.h"
#include "core/runtime/name_lookup.h"
#include "core/runtime/runtime_services.h"
#include "core/swarm/member.h"

namespace neuroshard::runtime {

struct PeerHostOptions {
  std::optional<platform::Endpoint> listen;  // nothing: the host only dials
  bool member = true;                        // takes part in the network; else it only has connections
  bool open_port = true;                     // a member asks the router to, unless it is on one LAN
  bool relay = true;                         // a member relays for others once they can dial it
  std::optional<nat::TurnAccount> turn;      // at swarm.turn_server
  net::TrafficLimits traffic;                // of a member
  net::TrafficCap* traffic_cap = nullptr;    // of a member; outlives the host
  Bytes bans;                  // of an earlier run (net::BanList); an unreadable list is dropped
  swarm::MemberOptions swarm;  // port and address come from `listen`
  std::size_t open_files = platform::open_file_limit();  // connection_room() bounds connections by it
};

class PeerHost {
 public:
  // Announces the program's version unless options.swarm.program names another. Errors: those of
  // rpc::load_module and of the transport; Busy: the port is taken.
  static Expected<std::unique_ptr<PeerHost>> start(crypto::KeyPair key, const RuntimeServices& services,
                                                   PeerHostOptions options);
  ~PeerHost();
  PeerHost(const PeerHost&) = delete;
  PeerHost& operator=(const PeerHost&) = delete;

  platform::Endpoint endpoint() const { return endpoint_; }
  net::NodeId id() const { return id_; }
  const net::RefusalCounts& refusals() const { return refusals_; }
  net::BanList& bans() { return bans_; }
  net::Conduct& conduct() { return *conduct_; }
  net::PeerRanks& ranks() { return ranks_; }

  // Of a member, in force at once (net::TrafficMeter::set_limits).  Threads: any.
  void limit_traffic(net::TrafficLimits limits, std::uint64_t month);

  // Runs `task` on the executor and waits for its end, also when the executor's queue is full.
  void run(const std::function<void()>& task);

  // ---- The executor's, all below.
  swarm::Member& member() { return *member_; }
  net::PeerTransport& transport() { return *transport_; }
  // Null: a member that does not listen.
  nat::Tunnels* tunnels() { return tunnels_.get(); }
  Executor& executor() { return *executor_; }
  const Clock& clock() const { return services_.clock; }
  const crypto::KeyPair& key() const { return key_; }
  net::TrafficMeter* traffic() { return meter_.get(); }       // null: of no member
  const net::LineSpeed* line() const { return line_.get(); }  // null: of no member

 private:
  PeerHost(crypto::KeyPair key, const RuntimeServices& services);
  Expected<void> open(const PeerHostOptions& options, std::uint64_t seed);
  Expected<void> open_relay(const PeerHostOptions& options, const ConnectionRoom& room);
  Expected<void> open_transport(const PeerHostOptions& options, const ConnectionRoom& room,
                                std::uint64_t seed);
  void open_meter(const PeerHostOptions& options);
  void open_member(const PeerHostOptions& options, std::uint64_t seed);
  Expected<void> open_ways(const PeerHostOptions& options);
  Expected<void> open_tunnels(const PeerHostOptions& options);
  bool listens_everywhere() const;
  bool has_relay_data() const;

  const crypto::KeyPair key_;
  const net::NodeId id_;
  const RuntimeServices services_;
  net::BanList bans_;
  net::PeerRanks ranks_;
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

}  // namespace neuroshard::runtime
