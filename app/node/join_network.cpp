#include "app/node/join_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/node/invited_peers.h"
#include "app/node/kept_port.h"
#include "app/node/turn_account.h"
#include "app/node/wallet_delegation.h"

namespace neuroshard::app {
namespace {

// Whoever trains holds all of the model. Of one with more slots than a record takes the experts are left out.
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

constexpr Duration look = std::chrono::seconds(5);
constexpr Duration rewrite = std::chrono::minutes(10);
// A cache of 64 records of the greatest size, and its frame.
constexpr std::uint64_t longest_cache = swarm::max_peer_cache_bytes;

std::string cache_path(const std::string& data_directory) {
  return data_directory + "/peers.cache";
}

std::string bans_path(const std::string& data_directory) {
  return data_directory + "/peers.bans";
}

std::vector<swarm::CachedPeer> read_cache(storage::FileEnv& files, const std::string& path, Logger& logger) {
  if (!files.exists(path)) return {};
  const auto bytes = storage::read_file(files, path, longest_cache);
  auto peers =
      bytes.ok() ? swarm::decode_peer_cache(*bytes) : Expected<std::vector<swarm::CachedPeer>>(bytes.error());
  if (peers.ok()) return std::move(*peers);
  logger.warning("swarm", fmt::format("{} is not used: {}; it is made anew", path, peers.error().message));
  return {};
}

Expected<swarm::MemberOptions> member_options(const JoinFlags& flags, const config::DataDirectory& directory,
                                              Logger& logger, CommandContext& context) {
  const config::DirectoryPart& known = directory.profile().directory;
  std::vector<std::string> texts = flags.sources;
  texts.insert(texts.end(), known.trackers.begin(), known.trackers.end());
  texts.insert(texts.end(), known.bootstrap.begin(), known.bootstrap.end());
  for (std::string& text : read_invited_peers(context.files, directory.path(), logger))
    texts.push_back(std::move(text));
  swarm::MemberOptions member;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(swarm::FirstPeer peer, parse_first_peer(text));
    member.sources.push_back(std::move(peer));
  }
  member.network_id = directory.network_id();
  member.program = program_version();
  // Where all who are named have private addresses (devnet), it is a network of one's own. What a name will
  // mean is not known yet: it counts as one of the internet.
  member.one_lan =
      flags.lan || (!member.sources.empty() &&
                    std::none_of(member.sources.begin(), member.sources.end(), [](const auto& peer) {
                      return !peer.name.empty() || platform::globally_routable(peer.endpoint.ip);
                    }));
  member.cached = read_cache(context.files, cache_path(directory.path()), logger);
  member.facts.delegation = find_delegation(context, directory, logger);
  return member;
}

}  // namespace

Expected<std::unique_ptr<NetworkPart>> NetworkPart::join(const JoinFlags& flags,
                                                         const config::DataDirectory& directory,
                                                         Logger& logger, CommandContext& context) {
  const config::DirectoryPart& known = directory.profile().directory;
  if (flags.sources.empty() && known.trackers.empty() && known.bootstrap.empty() && !flags.port &&
      flags.mainline_nodes.empty() && read_invited_peers(context.files, directory.path(), logger).empty())
    return std::unique_ptr<NetworkPart>();
  if (directory.profile().consensus.name == "solo") {
    return make_error(ErrorCode::InvalidArgument,
                      "the network solo has no peers; join one by --profile, in a data directory of its own");
  }
  PeerHostOptions options;
  NS_ASSIGN_OR_RETURN(const platform::IpAddress ip, platform::parse_ip(flags.address));
  options.listen = platform::Endpoint{ip, 0};
  const auto on = [&](config::Setting setting) { return directory.settings().word(setting) == "on"; };
  options.open_port = on(config::Setting::OpenPort);
  options.relay = on(config::Setting::RelayForOthers);
  NS_ASSIGN_OR_RETURN(options.swarm, member_options(flags, directory, logger, context));
  TurnSettings turn = read_turn_settings(directory, context.files);
  if (!turn.trouble.empty())
    logger.warning("swarm", fmt::format("the TURN server {} is not used: {}", turn.server, turn.trouble));
  options.turn = std::move(turn.account);
  options.swarm.turn_server = std::move(turn.server);
  options.swarm.turn_trouble = std::move(turn.trouble);
  if (const std::string path = bans_path(directory.path()); context.files.exists(path)) {
    auto bans = storage::read_file(context.files, path, net::max_ban_file_bytes);
    if (bans.ok())
      options.bans = std::move(*bans);
    else
      logger.warning("swarm", fmt::format("{} is not used: {}", path, bans.error().message));
  }
  std::unique_ptr<NetworkPart> part(new NetworkPart(directory.path(), logger, context));
  NS_RETURN_IF_ERROR(part->keep_limits(directory, options));
  const bool one_lan = options.swarm.one_lan;
  part->reporting_as_ = {options.swarm.facts.delegation, one_lan};
  part->gives_ = on(config::Setting::ServeFiles);
  NS_RETURN_IF_ERROR(part->listen(flags, directory, std::move(options)));
  part->kept_bans_ = part->host_->bans().changes();
  part->report_ = std::make_unique<NetworkReport>(*part->host_, directory.profile());
  part->meet(flags, directory, one_lan);
  return part;
}

Expected<void> NetworkPart::keep_limits(const config::DataDirectory& directory, PeerHostOptions& options) {
  const config::Settings& settings = directory.settings();
  options.traffic = {settings.number(config::Setting::UploadLimit),
                     settings.number(config::Setting::DownloadLimit)};
  // Counted without a limit, too: who sets one in the middle of a month has used what was used.
  NS_ASSIGN_OR_RETURN(traffic_cap_, net::TrafficCap::open(context_.files, data_directory_ + "/traffic.month",
                                                          settings.number(config::Setting::MonthlyData),
                                                          context_.clock.wall_now()));
  options.traffic_cap = &*traffic_cap_;
  return {};
}

// In a network of one's own the neighbours, in one of the internet the public meeting place: there a private
// address is of no use to others, and nobody lists a private network in public.
void NetworkPart::meet(const JoinFlags& flags, const config::DataDirectory& directory, bool one_lan) {
  const auto on = [&](config::Setting setting) { return directory.settings().word(setting) == "on"; };
  MeetingOptions options;
  options.network_id = directory.network_id();
  options.port = host_->endpoint().port;
  // Who listens on the loopback interface only can't be dialled by a neighbour.
  const platform::IpAddress& ip = host_->endpoint().ip;
  const bool loopback = ip == platform::IpAddress{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}} ||
                        (ip.is_v4() && ip.bytes[12] == 127);
  options.local = one_lan && !loopback && on(config::Setting::LocalDiscovery);
  options.mainline = on(config::Setting::MainlineRendezvous) &&
                     directory.profile().consensus.name != "devnet" &&
                     (!one_lan || !flags.mainline_nodes.empty());
  options.mainline_nodes = flags.mainline_nodes;
  if (options.local || options.mainline)
    places_ = std::make_unique<MeetingPlaces>(*host_, logger_, context_.entropy, options);
}

Expected<void> NetworkPart::listen(const JoinFlags& flags, const config::DataDirectory& directory,
                                   PeerHostOptions options) {
  const auto start = [&](std::uint16_t port) -> Expected<void> {
    options.listen->port = port;
    Hash256 seed = directory.node_key().seed();
    crypto::KeyPair key = crypto::KeyPair::from_seed(seed);
    crypto::wipe({seed.data(), seed.size()});
    NS_ASSIGN_OR_RETURN(host_,
                        PeerHost::start(std::move(key), context_.clock, context_.entropy, logger_, options));
    return {};
  };
  const auto chosen = static_cast<std::uint16_t>(directory.settings().number(config::Setting::ListenPort));
  const auto own = static_cast<std::uint16_t>(directory.profile().directory.p2p_port);
  const std::uint16_t wanted = flags.port.value_or(chosen != 0 ? chosen : own);
  // Who names a port by hand wants that one; with a setting the node starts also where it is taken.
  if (flags.port.value_or(0) != 0) return start(wanted);
  if (const auto kept = read_kept_port(context_.files, data_directory_, wanted, logger_)) {
    const auto started = start(*kept);
    if (started.ok() && wanted != 0)
      logger_.info("swarm", fmt::format("listening for peers at port {}, which was taken in place of {} and "
                                        "kept; --p2p-port {} goes back to that one",
                                        *kept, wanted, wanted));
    if (started.ok() || started.error().code != ErrorCode::Busy) return started;
    logger_.warning("swarm", started.error().message + "; it was this node's until now");
  }
  auto started = start(wanted);
  if (started.ok() && wanted != 0) return {};
  if (!started.ok()) {
    if (started.error().code != ErrorCode::Busy || wanted == 0) return started;
    NS_RETURN_IF_ERROR(start(0));
    logger_.warning("swarm", fmt::format("{}; port {} is taken in its place and kept for the next starts",
                                         started.error().message, host_->endpoint().port));
  }
  // Not kept on a full disk: then the next start takes another one.
  if (const auto kept = keep_port(context_.files, data_directory_, wanted, host_->endpoint().port);
      !kept.ok())
    logger_.warning("swarm", "the port is not kept: " + kept.error().describe());
  return {};
}

void NetworkPart::keep_peers() {
  const MonotonicTime now = context_.clock.monotonic_now();
  if (now - looked_ < look) return;
  looked_ = now;
  keep_peers_now();
}

void NetworkPart::tell_capacity(const node::Snapshot& view) {
  const MonotonicTime now = context_.clock.monotonic_now();
  if (now - told_ < look) return;
  told_ = now;
  swarm::Capacity capacity;
  capacity.memory_bytes = view.resources.memory_limit_bytes != 0 ? view.resources.memory_limit_bytes
                                                                 : view.resources.memory_total_bytes;
  if (view.training.last_step)
    capacity.tokens_per_second = static_cast<std::uint32_t>(view.training.last_step->tokens_per_second);
  capacity.slots = held_slots(view.model);
  capacity.gives = gives_;
  host_->run([&] { host_->member().set_capacity(std::move(capacity)); });
}

void NetworkPart::keep_bans() {
  const std::uint64_t changes = host_->bans().changes();
  if (changes == kept_bans_) return;
  const auto written =
      storage::write_file_atomic(context_.files, bans_path(data_directory_), host_->bans().encode());
  if (!written.ok()) logger_.warning("swarm", "the bans are not remembered: " + written.error().describe());
  kept_bans_ = changes;  // also after a failure, as with the peers
}

void NetworkPart::keep_peers_now() {
  keep_bans();
  std::vector<swarm::CachedPeer> peers;
  host_->run([&] { peers = host_->member().good_peers(); });
  std::vector<net::NodeId> ids;
  for (const swarm::CachedPeer& peer : peers) ids.push_back(peer.record.id());
  std::sort(ids.begin(), ids.end());
  const MonotonicTime now = context_.clock.monotonic_now();
  if (peers.empty() || (ids == kept_ && now - written_ < rewrite)) return;
  const auto written = storage::write_file_atomic(context_.files, cache_path(data_directory_),
                                                  swarm::encode_peer_cache(peers));
  if (!written.ok())
    logger_.warning("swarm", "the good peers are not remembered: " + written.error().describe());
  // Also after a failure: a full disk is not asked again every five seconds.
  kept_ = std::move(ids);
  written_ = now;
}

}  // namespace neuroshard::app
