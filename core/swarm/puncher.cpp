#include "core/swarm/puncher.h"

#include <algorithm>

#include "core/dht/messages.h"
#include "core/nat/hole_punch.h"

namespace neuroshard::swarm {
namespace {

using nat::Mapping;
using platform::Endpoint;

constexpr Duration stun_limit = std::chrono::seconds(3);  // for each server
constexpr Duration ask_limit = std::chrono::seconds(8);   // the other node asks its servers meanwhile
constexpr Duration calling_limit = std::chrono::seconds(10);
constexpr Duration called_limit = std::chrono::seconds(12);  // begins earlier than the caller
constexpr Duration probe_rarely = std::chrono::minutes(10);
constexpr Duration probe_soon = std::chrono::seconds(30);
constexpr std::size_t servers_for_a_probe = 3, servers_for_a_hole = 2;
constexpr std::size_t endpoint_bytes = 18;
constexpr std::uint16_t least_port = 1024;  // NATs give none below
// A punch is a few dials to an address that the other node names. There are few for each node and in all, so
// that a node can't make this one dial for it.
constexpr net::RequestLimits each{0.1, 3, 1024, 4};
constexpr double all_per_second = 1, all_burst = 8;

bool known(Mapping mapping) {
  return mapping != Mapping::NoAnswer && mapping != Mapping::OneServer;
}

}  // namespace

// Behind a relay all callers have its address: only their ids are counted.
Puncher::Puncher(nat::Tunnels& tunnels, const Clock& clock, bool one_lan, std::uint64_t seed,
                 std::function<void()> changed, net::DialGate* gate)
    : tunnels_(tunnels),
      clock_(clock),
      one_lan_(one_lan),
      changed_(std::move(changed)),
      gate_(gate),
      limiter_(each, /*one_lan=*/true, seed),
      all_(all_per_second, all_burst, clock.monotonic_now()) {}

Puncher::~Puncher() {
  lifetime_.end();
}

bool Puncher::punchable() const {
  return !servers_.empty() &&
         (finding_.mapping == Mapping::EndpointIndependent || finding_.mapping == Mapping::None);
}

void Puncher::set_servers(std::vector<Endpoint> servers, const std::optional<Endpoint>& seen_at) {
  const auto of_version = [&](bool v4) {
    return std::count_if(servers.begin(), servers.end(),
                         [v4](const Endpoint& server) { return server.ip.is_v4() == v4; });
  };
  bool v4 = of_version(true) >= of_version(false);
  if (seen_at && of_version(seen_at->ip.is_v4()) > 0) v4 = seen_at->ip.is_v4();
  std::erase_if(servers, [v4](const Endpoint& server) { return server.ip.is_v4() != v4; });
  if (finding_.outside && !servers.empty() && finding_.outside->ip.is_v4() != v4) restart_probe();
  const bool before = punchable();
  servers_ = std::move(servers);
  if (punchable() != before) changed_();
}

std::vector<Endpoint> Puncher::some_servers(std::size_t most) const {
  std::vector<Endpoint> chosen;
  for (const Endpoint& server : servers_) {
    const auto same_address = [&](const Endpoint& other) { return other.ip == server.ip; };
    if (chosen.size() < most && std::none_of(chosen.begin(), chosen.end(), same_address))
      chosen.push_back(server);
  }
  return chosen;
}

void Puncher::probe_nat() {
  const std::vector<Endpoint> servers = some_servers(servers_for_a_probe);
  const bool more = !known(finding_.mapping) && servers.size() > asked_;
  if (servers.empty() || probing_ || (!more && clock_.monotonic_now() < next_)) return;
  probing_ = true;
  asked_ = servers.size();
  tunnels_.probe_nat(
      servers, stun_limit,
      [this, life = lifetime_.token(), round = round_](const Expected<nat::MappingFinding>& finding) {
        if (!life.alive()) return;
        probing_ = false;
        if (round != round_) return probe_nat();
        const bool before = punchable();
        finding_ = finding.ok() ? *finding : nat::MappingFinding{};
        next_ = clock_.monotonic_now() + (known(finding_.mapping) ? probe_rarely : probe_soon);
        if (punchable() != before) changed_();
      });
}

void Puncher::restart_probe() {
  ++round_;
  asked_ = 0;
  next_ = {};
  const bool before = punchable();
  finding_ = {};
  if (before) changed_();
}

bool Puncher::may_be_dialled(const Endpoint& remote) const {
  return remote.port >= least_port && (one_lan_ || platform::globally_routable(remote.ip));
}

Expected<Endpoint> Puncher::remote_in(ByteSpan message) const {
  NS_ASSIGN_OR_RETURN(const Endpoint remote, dht::decode_endpoint(message));
  if (!may_be_dialled(remote))
    return make_error(ErrorCode::Denied, "a punch needs a public address and a port from 1024 on");
  if (!servers_.empty() && servers_.front().ip.is_v4() != remote.ip.is_v4())
    return make_error(ErrorCode::Unsupported, servers_.front().ip.is_v4()
                                                  ? "this node punches over IPv4 only"
                                                  : "this node punches over IPv6 only");
  return remote;
}

// The address only: the port is the mapping of another socket. On one LAN a caller may come through no relay.
bool Puncher::is_attested(const net::Caller& from, const platform::IpAddress& named) const {
  if (from.endpoint.ip == named) return true;
  const auto reported = tunnels_.relayed_caller(from.endpoint);
  return reported ? *reported == named : one_lan_;
}

Expected<void> Puncher::admit_dials(const Endpoint& remote) {
  return gate_ == nullptr ? Expected<void>() : gate_->admit(remote, nat::dials_of_punch);
}

void Puncher::met(const Endpoint& remote) {
  if (gate_ != nullptr) gate_->answered(remote, nat::dials_of_punch);
}

void Puncher::punch(const std::shared_ptr<net::PeerChannel>& relayed, Done done) {
  const auto end = [this, done = std::move(done)](Expected<Punched> result) {
    --calling_;
    done(std::move(result));
  };
  ++calling_;
  tunnels_.open_hole(
      some_servers(servers_for_a_hole), stun_limit,
      [this, life = lifetime_.token(), relayed, end](const Expected<nat::Hole>& hole) {
        if (!life.alive()) return;
        if (!hole.ok()) return end(hole.error());
        relayed->call(
            net::Method::Punch, dht::encode_endpoint((*hole)->outside),
            net::call_deadline(ask_limit, endpoint_bytes, endpoint_bytes),
            [this, life, end, hole = *hole](const Expected<Bytes>& answer) {
              if (!life.alive()) return;
              const auto remote = answer.ok() ? remote_in(*answer) : Expected<Endpoint>(answer.error());
              if (!remote.ok()) return end(remote.error());
              if (const auto may = admit_dials(*remote); !may.ok()) return end(may.error());
              tunnels_.punch(hole, *remote, calling_limit,
                             [this, life, end, remote = *remote](const Expected<std::uint16_t>& port) {
                               if (!life.alive()) return;
                               if (!port.ok()) return end(port.error());
                               met(remote);
                               end(Punched{*port, remote});
                             });
            });
      });
}

void Puncher::answer(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  const auto remote = remote_in(request);
  if (!remote.ok()) return respond(remote.error());
  if (!punchable())
    return respond(make_error(ErrorCode::Unsupported, "this node can't be reached by punching"));
  if (!is_attested(from, remote->ip))
    return respond(make_error(ErrorCode::Denied, "the relay reports another address of the caller"));
  const MonotonicTime now = clock_.monotonic_now();
  if (called_ >= most_called || !limiter_.admit(from, now) || !all_.try_take(1, now))
    return respond(make_error(ErrorCode::Exhausted, "too many punches; wait ten seconds"));
  if (const auto may = admit_dials(*remote); !may.ok()) return respond(may.error());
  ++called_;
  tunnels_.open_hole(
      some_servers(servers_for_a_hole), stun_limit,
      [this, life = lifetime_.token(), remote = *remote, respond](const Expected<nat::Hole>& hole) {
        if (!life.alive()) return;
        if (!hole.ok()) {
          --called_;
          return respond(hole.error());
        }
        respond(dht::encode_endpoint((*hole)->outside));
        tunnels_.punch_inbound(*hole, remote, called_limit, [this, life, remote](const Expected<void>& done) {
          if (!life.alive()) return;
          --called_;
          if (done.ok()) met(remote);
        });
      });
}

}  // namespace neuroshard::swarm
