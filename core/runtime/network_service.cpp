#include "core/runtime/network_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/platform/socket/subnet.h"
#include "core/runtime/invited_peers.h"
#include "core/runtime/kept_port.h"
#include "core/runtime/turn_settings.h"
#include "core/runtime/wallet_delegation.h"

namespace neuroshard::runtime {
namespace {

// A node that trains holds the whole model. Omits the experts when a record has no room for all slots.
std::vector<net::HeldSlot> held_slots(const node::ModelView& model) {
  std::vector<net::HeldSlot> slots;
  if (model.parameters == 0) return slots;
  const auto add = [&](net::SlotKind kind, std::uint32_t layer, std::uint32_t expert) {
    slots.push_back({kind, static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(expert)});
  };
  add(net::SlotKind::Embed, 0, 0);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) add(net::SlotKind::Layer, layer, 0);
  if (2 + std::uint64_t{model.layers} * (1 + model.experts) <= net::max_slots)
    for (std::uint32_t layer = 0; layer < model.layers; ++layer)
      for (std::uint32_t expert = 0; expert < model.experts; ++expert)
        add(net::SlotKind::Expert, layer, expert);
  add(net::SlotKind::Head, 0, 0);
  if (slots.size() > net::max_slots) slots.clear();
  return slots;
}

constexpr Duration check_period = std::chrono::seconds(5);
constexpr Duration rewrite_period = std::chrono::minutes(10);
constexpr Duration notice_period = std::chrono::hours(24);

std::string cache_path(const std::string& data_directory) {
  return data_directory + "/peers.cache";
}

std::vector<swarm::CachedPeer> read_cache(storage::FileEnv& files, const std::string& path, Logger& logger) {
  if (!files.exists(path)) return {};
  const auto bytes = storage::read_file(files, path, swarm::max_peer_cache_bytes);
  auto peers =
      bytes.ok() ? swarm::decode_peer_cache(*bytes) : Expected<std::vector<swarm::CachedPeer>>(bytes.error());
  if (peers.ok()) return std::move(*peers);
  logger.warning("swarm", fmt::format("{} is not used: {}; a new one is made", path, peers.error().message));
  return {};
}

// Every peer to begin with: the options', the profile's and those of invitations.
Expected<std::vector<swarm::FirstPeer>> first_peers(const JoinOptions& options,
                                                    const config::DataDirectory& directory,
                                                    const RuntimeServices& services) {
  const config::DirectoryPart& known = directory.profile().directory;
  std::vector<std::string> texts = options.sources;
  texts.insert(texts.end(), known.trackers.begin(), known.trackers.end());
  texts.insert(texts.end(), known.bootstrap.begin(), known.bootstrap.end());
  for (std::string& text : read_invited_peers(services.files, directory.path(), services.logger))
    texts.push_back(std::move(text));
  std::vector<swarm::FirstPeer> peers;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(swarm::FirstPeer peer, parse_first_peer(text));
    peers.push_back(std::move(peer));
  }
  return peers;
}

// A network where every first peer has a private address (devnet) is a private one. A name is not resolved
// yet: it counts as an address of the internet.
bool all_private(const std::vector<swarm::FirstPeer>& peers) {
  return !peers.empty() && std::none_of(peers.begin(), peers.end(), [](const swarm::FirstPeer& peer) {
    return !peer.name.empty() || platform::globally_routable(peer.endpoint.ip);
  });
}

Expected<swarm::MemberOptions> member_options(const JoinOptions& options,
                                              const config::DataDirectory& directory,
                                              const RuntimeServices& services) {
  swarm::MemberOptions member;
  NS_ASSIGN_OR_RETURN(member.sources, first_peers(options, directory, services));
  member.network_id = directory.network_id();
  member.program = services.program_version;
  member.one_lan = options.lan || all_private(member.sources);
  member.cached = read_cache(services.files, cache_path(directory.path()), services.logger);
  member.facts.delegation = find_delegation(services, directory, options.passphrase);
  return member;
}

void take_turn_settings(const config::DataDirectory& directory, const RuntimeServices& services,
                        PeerHostOptions& host) {
  TurnSettings turn = read_turn_settings(directory, services.files);
  if (!turn.trouble.empty())
    services.logger.warning("swarm",
                            fmt::format("the TURN server {} is not used: {}", turn.server, turn.trouble));
  host.turn = std::move(turn.account);
  host.swarm.turn_server = std::move(turn.server);
  host.swarm.turn_trouble = std::move(turn.trouble);
}

bool is_on(const config::DataDirectory& directory, config::Setting setting) {
  return directory.settings().word(setting) == "on";
}

// Whether there is a peer to begin with, a port at which others find this node, or a network whose members look for one another.
// Nobody runs the public ones yet.
bool names_a_network(const JoinOptions& options, const config::DataDirectory& directory,
                     const RuntimeServices& services) {
  const config::DirectoryPart& known = directory.profile().directory;
  const bool has_members =
      directory.profile().consensus.sync != "none" && config::network_notice(directory.profile()).empty();
  return has_members || !options.sources.empty() || !known.trackers.empty() || !known.bootstrap.empty() ||
         options.port || !options.mainline_nodes.empty() ||
         !read_invited_peers(services.files, directory.path(), services.logger).empty();
}

Expected<PeerHostOptions> host_options(const JoinOptions& options, const config::DataDirectory& directory,
                                       const RuntimeServices& services) {
  PeerHostOptions host;
  NS_ASSIGN_OR_RETURN(const platform::IpAddress ip, platform::parse_ip(options.address));
  host.listen = platform::Endpoint{ip, 0};
  host.open_port = is_on(directory, config::Setting::OpenPort);
  host.relay = is_on(directory, config::Setting::RelayForOthers);
  NS_ASSIGN_OR_RETURN(host.swarm, member_options(options, directory, services));
  take_turn_settings(directory, services, host);
  host.bans = BanFile(services.files, directory.path(), services.logger).read();
  return host;
}

net::TrafficLimits traffic_limits(const config::Settings& settings) {
  return {settings.number(config::Setting::UploadLimit), settings.number(config::Setting::DownloadLimit)};
}

}  // namespace

Expected<std::unique_ptr<NetworkService>> NetworkService::join(const JoinOptions& options,
                                                               const config::DataDirectory& directory,
                                                               const RuntimeServices& services) {
  if (!names_a_network(options, directory, services)) return std::unique_ptr<NetworkService>();
  if (directory.profile().consensus.name == "solo") {
    return make_error(
        ErrorCode::InvalidArgument,
        "the network solo has no peers; join another network with --profile, in its own data directory");
  }
  NS_ASSIGN_OR_RETURN(PeerHostOptions host, host_options(options, directory, services));
  std::unique_ptr<NetworkService> network(new NetworkService(directory.path(), services));
  NS_RETURN_IF_ERROR(network->open_traffic(directory.settings(), host));
  const bool one_lan = host.swarm.one_lan;
  network->reporting_as_ = {host.swarm.facts.delegation, one_lan};
  network->serves_files_ = is_on(directory, config::Setting::ServeFiles);
  NS_RETURN_IF_ERROR(network->listen(options, directory, std::move(host)));
  network->ban_file_.note_saved(network->host_->bans());
  network->report_ = std::make_unique<NetworkReport>(*network->host_, directory.profile());
  network->start_discovery(options, directory, one_lan);
  return network;
}

Expected<void> NetworkService::open_traffic(const config::Settings& settings, PeerHostOptions& options) {
  options.traffic = traffic_limits(settings);
  // Traffic is counted without a limit, too: a limit that is set in the middle of a month covers all of it.
  NS_ASSIGN_OR_RETURN(traffic_cap_, net::TrafficCap::open(services_.files, data_directory_ + "/traffic.month",
                                                          settings.number(config::Setting::MonthlyData),
                                                          services_.clock.wall_now()));
  options.traffic_cap = &*traffic_cap_;
  return {};
}

void NetworkService::limit_traffic(const config::Settings& settings) {
  host_->limit_traffic(traffic_limits(settings), settings.number(config::Setting::MonthlyData));
}

// A private network looks for neighbours on the local network, one of the internet at the public meeting
// place. A private address is of no use to others there, and a private network is not listed in public.
void NetworkService::start_discovery(const JoinOptions& options, const config::DataDirectory& directory,
                                     bool one_lan) {
  DiscoveryOptions discovery;
  discovery.network_id = directory.network_id();
  discovery.port = host_->endpoint().port;
  // No neighbour can dial a node that listens on the loopback interface only.
  discovery.local = one_lan && !platform::is_loopback(host_->endpoint().ip) &&
                    is_on(directory, config::Setting::LocalDiscovery);
  discovery.mainline = is_on(directory, config::Setting::MainlineRendezvous) &&
                       directory.profile().consensus.name != "devnet" &&
                       (!one_lan || !options.mainline_nodes.empty());
  discovery.mainline_nodes = options.mainline_nodes;
  if (discovery.local || discovery.mainline)
    discovery_ = std::make_unique<PeerDiscovery>(*host_, services_, discovery);
}

Expected<void> NetworkService::start_host(const config::DataDirectory& directory, PeerHostOptions& host,
                                          std::uint16_t port) {
  host.listen->port = port;
  Hash256 seed = directory.node_key().seed();
  crypto::KeyPair key = crypto::KeyPair::from_seed(seed);
  crypto::wipe({seed.data(), seed.size()});
  NS_ASSIGN_OR_RETURN(host_, PeerHost::start(std::move(key), services_, host));
  return {};
}

Expected<void> NetworkService::listen(const JoinOptions& options, const config::DataDirectory& directory,
                                      PeerHostOptions host) {
  const auto start = [&](std::uint16_t port) { return start_host(directory, host, port); };
  const auto chosen = static_cast<std::uint16_t>(directory.settings().number(config::Setting::ListenPort));
  const auto own = static_cast<std::uint16_t>(directory.profile().directory.p2p_port);
  const std::uint16_t wanted = options.port.value_or(chosen != 0 ? chosen : own);
  // A port of the command line is taken or refused. A port of the settings may be replaced by a free one.
  if (options.port.value_or(0) != 0) return start(wanted);
  Logger& logger = services_.logger;
  if (const auto kept = read_kept_port(services_.files, data_directory_, wanted, logger)) {
    const auto started = start(*kept);
    if (started.ok() && wanted != 0)
      logger.info("swarm", fmt::format("listening for peers at port {}, which replaced port {} at an earlier "
                                       "start; --p2p-port {} selects that "
                                       "one again",
                                       *kept, wanted, wanted));
    if (started.ok() || started.error().code != ErrorCode::Busy) return started;
    logger.warning("swarm", started.error().message + "; this node used it until now");
  }
  auto started = start(wanted);
  if (started.ok() && wanted != 0) return {};
  if (!started.ok()) {
    if (started.error().code != ErrorCode::Busy || wanted == 0) return started;
    NS_RETURN_IF_ERROR(start(0));
    logger.warning("swarm", fmt::format("{}; using port {} instead, also at the next starts",
                                        started.error().message, host_->endpoint().port));
  }
  // On a full disk the port is not kept; the next start takes another one.
  if (const auto kept = keep_port(services_.files, data_directory_, wanted, host_->endpoint().port);
      !kept.ok())
    logger.warning("swarm", "the port was not saved: " + kept.error().describe());
  return {};
}

void NetworkService::save_peers() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now - checked_ < check_period) return;
  checked_ = now;
  ban_file_.save(host_->bans(), now);
  save_good_peers();
  log_delegation_notice();
}

bool NetworkService::needs_new_start() const {
  const auto& delegation = reporting_as_.delegation;
  return delegation && renewal_is_due(*delegation, started_, services_.clock.wall_now());
}

std::string NetworkService::delegation_notice() const {
  if (!reporting_as_.delegation) return {};
  return runtime::delegation_notice(*reporting_as_.delegation, data_directory_, services_.clock.wall_now());
}

void NetworkService::log_delegation_notice() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (notice_logged_ && now - *notice_logged_ < notice_period) return;
  const std::string notice = delegation_notice();
  if (notice.empty()) return;
  notice_logged_ = now;
  services_.logger.warning("swarm", notice);
}

void NetworkService::announce_capacity(const node::Snapshot& view) {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now - announced_ < check_period) return;
  announced_ = now;
  swarm::Capacity capacity;
  capacity.memory_bytes = view.resources.memory_limit_bytes != 0 ? view.resources.memory_limit_bytes
                                                                 : view.resources.memory_total_bytes;
  if (view.training.last_step)
    capacity.tokens_per_second = static_cast<std::uint32_t>(view.training.last_step->tokens_per_second);
  capacity.slots = held_slots(view.model);
  capacity.gives = serves_files_;
  host_->run([&] { host_->member().set_capacity(std::move(capacity)); });
}

void NetworkService::save_peers_now() {
  ban_file_.save_now(host_->bans(), services_.clock.monotonic_now());
  save_good_peers();
}

void NetworkService::save_good_peers() {
  std::vector<swarm::CachedPeer> peers;
  host_->run([&] { peers = host_->member().good_peers(); });
  std::vector<net::NodeId> ids;
  for (const swarm::CachedPeer& peer : peers) ids.push_back(peer.record.id());
  std::sort(ids.begin(), ids.end());
  const MonotonicTime now = services_.clock.monotonic_now();
  if (peers.empty() || (ids == saved_peers_ && now - written_ < rewrite_period)) return;
  const auto written = storage::write_file_atomic(services_.files, cache_path(data_directory_),
                                                  swarm::encode_peer_cache(peers));
  if (!written.ok())
    services_.logger.warning("swarm", "the good peers were not saved: " + written.error().describe());
  // Also after a failure: a full disk is not tried again every five seconds.
  saved_peers_ = std::move(ids);
  written_ = now;
}

}  // namespace neuroshard::runtime
