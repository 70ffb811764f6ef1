#include "core/runtime/peer_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "core/nat/nat_pmp_mapper.h"
#include "core/nat/upnp_mapper.h"
#include "core/network_module/network_module.h"
#include "core/platform/process/process_memory.h"
#include "core/platform/socket/resolve.h"
#include "core/platform/socket/subnet.h"
#include "core/rpc/grpc_transport.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t queue_capacity = 8192;
// Below this the system ends processes, or pages until nothing moves.
constexpr std::uint64_t least_memory = 64u << 20;

bool memory_is_short() {
  const platform::AvailableMemory memory = platform::available_memory();
  return memory.total != 0 && memory.available < least_memory;
}

bool relays(const PeerHostOptions& options) {
  return options.member && options.relay && options.listen.has_value();
}

bool is_on_own_subnet(const platform::IpAddress& address) {
  const std::vector<platform::Subnet> subnets = platform::own_subnets();
  return std::any_of(subnets.begin(), subnets.end(),
                     [&](const platform::Subnet& one) { return platform::is_within(address, one); });
}

}  // namespace

PeerHost::PeerHost(crypto::KeyPair key, const RuntimeServices& services)
    : key_(std::move(key)),
      id_(crypto::node_id(key_.public_key())),
      services_(services),
      bans_(services.clock),
      executor_(make_thread_executor("ns-swarm", queue_capacity)),
      names_(std::make_unique<NameLookup>(*executor_)) {}

PeerHost::~PeerHost() {
  run([this] {
    if (transport_) transport_->serve(nullptr);
    member_.reset();
  });
  // Their threads post to the executor, so it keeps running meanwhile. The router goes first: it is slow.
  router_.reset();
  tunnels_.reset();
  run([this] {
    transport_.reset();
    relay_.reset();  // after the transport, which brings it connections
    limited_.reset();
    meter_.reset();
  });
}

void PeerHost::run(const std::function<void()>& task) {
  auto done = std::make_shared<std::promise<void>>();
  const auto run_task = [&task, done] {
    task();
    done->set_value();
  };
  std::unique_ptr<TimerHandle> timer;
  // A full queue refuses posts. Timers have no bound and line up behind the posts, so this one gets its turn.
  if (!executor_->post(run_task)) timer = executor_->post_after(Duration(0), run_task);
  done->get_future().wait();
}

Expected<std::unique_ptr<PeerHost>> PeerHost::start(crypto::KeyPair key, const RuntimeServices& services,
                                                    PeerHostOptions options) {
  if (options.swarm.program.empty()) options.swarm.program = services.program_version;
  std::unique_ptr<PeerHost> host(new PeerHost(std::move(key), services));
  std::array<std::uint8_t, 8> seed{};
  services.entropy.fill({seed.data(), seed.size()});
  Expected<void> opened;
  host->run([&] { opened = host->open(options, load_le<std::uint64_t>(seed.data())); });
  NS_RETURN_IF_ERROR(std::move(opened));
  return host;
}

Expected<void> PeerHost::open(const PeerHostOptions& options, std::uint64_t seed) {
  conduct_ = std::make_unique<net::Conduct>(bans_, services_.clock, options.swarm.one_lan,
                                            net::ConductRules(), &ranks_);
  std::vector<net::NodeId> named;
  for (const swarm::FirstPeer& peer : options.swarm.sources)
    if (peer.id) named.push_back(*peer.id);
  ranks_.know(named);
  if (!options.bans.empty())
    if (const auto restored = bans_.restore(options.bans); !restored.ok())
      services_.logger.warning("swarm", restored.error().message + "; a new list is made");
  const ConnectionRoom room = connection_room(options.open_files, relays(options));
  if (room.lowered && options.listen)
    services_.logger.warning(
        "swarm", fmt::format("this process may open {} files, so it takes at most {} connections of other "
                             "nodes; raise its hard limit of open files (ulimit -Hn, LimitNOFILE) to 4096",
                             options.open_files, room.peers));
  NS_RETURN_IF_ERROR(open_relay(options, room));
  NS_RETURN_IF_ERROR(open_transport(options, room, seed));
  if (!options.member) return open_tunnels(options);
  open_meter(options);
  NS_RETURN_IF_ERROR(open_ways(options));
  open_member(options, seed);
  return {};
}

Expected<void> PeerHost::open_relay(const PeerHostOptions& options, const ConnectionRoom& room) {
  if (!relays(options)) return {};
  nat::RelayLimits limits;
  limits.connections = room.relayed;
  if (options.swarm.one_lan) {
    limits.reservations_per_prefix = limits.reservations;
    limits.connections_per_prefix = limits.connections;
  }
  NS_ASSIGN_OR_RETURN(relay_, nat::RelayRole::start(limits, services_.clock, services_.entropy));
  return {};
}

Expected<void> PeerHost::open_transport(const PeerHostOptions& options, const ConnectionRoom& room,
                                        std::uint64_t seed) {
  NS_ASSIGN_OR_RETURN(const auto network, network_module::load_network_module());
  rpc::RpcOptions transport;
  transport.listen = options.listen;
  transport.hello.network_id = options.swarm.network_id;
  transport.hello.program = options.swarm.program;
  if (options.swarm.one_lan) transport.limits.share_one_lan();
  transport.memory_is_short = memory_is_short;
  transport.seed = seed;
  transport.limits.listener.free_loopback = true;
  transport.limits.listener.connections = room.peers;
  transport.limits.listener.waiting = room.waiting;
  if (relay_) {
    transport.plain_begins = nat::relay_begins;
    transport.plain = [relay = relay_.get()](int descriptor) { relay->take(descriptor); };
  }
  if (options.member)
    line_ = std::make_unique<net::LineSpeed>(services_.clock, options.traffic.up, options.traffic.down);
  NS_ASSIGN_OR_RETURN(transport_, network.make_transport({key_, *executor_, services_.clock, bans_, refusals_,
                                                          conduct_.get(), line_.get(), &ranks_},
                                                         transport));
  endpoint_ = transport_->endpoint();
  return {};
}

void PeerHost::limit_traffic(net::TrafficLimits limits, std::uint64_t month) {
  meter_->set_limits(limits, month);
  line_->set_limits(limits.up, limits.down);
}

void PeerHost::open_meter(const PeerHostOptions& options) {
  meter_ = std::make_unique<net::TrafficMeter>(services_.clock, services_.logger, options.traffic,
                                               options.traffic_cap);
  if (relay_)
    relay_->set_pace([meter = meter_.get(), line = line_.get()](std::uint64_t bytes) {
      for (const net::LineWay way : {net::LineWay::Up, net::LineWay::Down}) line->carried(way, bytes);
      return meter->relayed(bytes);
    });
  limited_ = std::make_unique<net::LimitedTransport>(*transport_, *executor_, *meter_, line_.get(), &ranks_);
}

void PeerHost::open_member(const PeerHostOptions& options, std::uint64_t seed) {
  swarm::MemberOptions member = options.swarm;
  member.port = endpoint_.port;
  member.listens_at = endpoint_.ip;
  member_ = std::make_unique<swarm::Member>(
      swarm::MemberServices{key_, *limited_, *executor_, services_.clock, services_.logger, names_.get(),
                            router_.get(), tunnels_.get(), relay_.get(), conduct_.get(), line_.get(), &ranks_,
                            is_on_own_subnet, [this] { return has_relay_data(); }},
      std::move(member), seed);
  transport_->serve(&limited_->serving(member_.get()));
  member_->start();
}

// The relay takes nobody for a while after data was missing.
bool PeerHost::has_relay_data() const {
  return meter_->check_strangers().ok() && (!relay_ || !relay_->used_up());
}

// The ways to a member that others can't dial directly.
Expected<void> PeerHost::open_ways(const PeerHostOptions& options) {
  if (!options.listen) return {};
  NS_RETURN_IF_ERROR(open_tunnels(options));
  if (!options.open_port || !listens_everywhere() || options.swarm.one_lan) return {};
  router_ = std::make_unique<nat::RouterPort>(
      services_.clock, services_.entropy, endpoint_.port, ways_to_open_ports, [this](nat::RouterNews news) {
        if (!news.words.empty()) services_.logger.info("swarm", news.words);
        static_cast<void>(executor_->post([this, news = std::move(news)] {
          if (member_) member_->router_says(news);
        }));
      });
  return {};
}

bool PeerHost::listens_everywhere() const {
  return endpoint_.ip == platform::IpAddress{} || endpoint_.ip == platform::IpAddress::v4(0, 0, 0, 0);
}

// A host that does not listen calls others through tunnels as well.
Expected<void> PeerHost::open_tunnels(const PeerHostOptions& options) {
  nat::TunnelOptions tunnels;
  tunnels.own = {listens_everywhere() ? platform::IpAddress::v4(127, 0, 0, 1) : endpoint_.ip, endpoint_.port};
  tunnels.turn = options.turn;
  tunnels.one_lan = options.swarm.one_lan;
  NS_ASSIGN_OR_RETURN(
      tunnels_, nat::Tunnels::start(services_.clock, services_.entropy, *executor_, std::move(tunnels)));
  return {};
}

std::vector<std::unique_ptr<nat::PortMapper>> ways_to_open_ports(
    const std::optional<platform::IpAddress>& gateway) {
  std::vector<std::unique_ptr<nat::PortMapper>> ways;
  ways.push_back(nat::make_upnp_mapper());
  if (gateway)
    ways.push_back(std::make_unique<nat::NatPmpMapper>(platform::Endpoint{*gateway, nat::nat_pmp::port}));
  return ways;
}

Expected<net::Dial> parse_dial(const std::string& text) {
  net::Dial dial;
  const std::size_t at = text.find('@');
  if (at != std::string::npos) {
    NS_ASSIGN_OR_RETURN(dial.id, hash_from_hex(text.substr(0, at)));
  }
  NS_ASSIGN_OR_RETURN(const auto endpoints,
                      platform::resolve(at == std::string::npos ? text : text.substr(at + 1)));
  dial.endpoint = endpoints.front();
  return dial;
}

Expected<std::vector<net::Dial>> parse_dials(const std::vector<std::string>& texts) {
  std::vector<net::Dial> dials;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(net::Dial dial, parse_dial(text));
    dials.push_back(dial);
  }
  return dials;
}

Expected<swarm::FirstPeer> parse_first_peer(const std::string& text) {
  swarm::FirstPeer peer;
  const std::size_t at = text.find('@');
  if (at != std::string::npos) {
    NS_ASSIGN_OR_RETURN(peer.id, hash_from_hex(text.substr(0, at)));
  }
  const std::string place = at == std::string::npos ? text : text.substr(at + 1);
  if (const auto endpoint = platform::parse_endpoint(place); endpoint.ok()) {
    peer.endpoint = *endpoint;
  } else {
    NS_RETURN_IF_ERROR(platform::check_place(place));
    peer.name = place;
  }
  return peer;
}

}  // namespace neuroshard::runtime
