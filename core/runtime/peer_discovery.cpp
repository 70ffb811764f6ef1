#include "core/runtime/peer_discovery.h"

#include <algorithm>
#include <array>

#include "core/network_module/network_module.h"
#include "core/rendezvous/local_discovery.h"
#include "core/rendezvous/mainline.h"

namespace neuroshard::runtime {
namespace {

std::uint64_t seed_of(crypto::Entropy& entropy) {
  std::array<std::uint8_t, 8> bytes{};
  entropy.fill({bytes.data(), bytes.size()});
  return load_le<std::uint64_t>(bytes.data());
}

bool all_private(const std::vector<std::string>& nodes) {
  return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [](const std::string& node) {
    const auto endpoint = platform::parse_endpoint(node);
    return endpoint.ok() && !platform::globally_routable(endpoint->ip);
  });
}

}  // namespace

PeerDiscovery::PeerDiscovery(PeerHost& host, const RuntimeServices& services, const DiscoveryOptions& options)
    : host_(host), logger_(services.logger), rng_(seed_of(services.entropy)) {
  host_.run([&] { open(options); });
}

PeerDiscovery::~PeerDiscovery() {
  host_.run([this] {
    for (Place& place : places_) place.seeker.reset();
    places_.clear();
  });
}

void PeerDiscovery::open(const DiscoveryOptions& options) {
  swarm::Member& member = host_.member();
  rendezvous::SeekerQuestions questions;
  questions.alone = [&member] { return member.seeks_others(); };
  questions.found = [&member](const platform::Endpoint& endpoint) {
    member.suggest({endpoint, std::nullopt});
  };
  if (options.local) {
    rendezvous::LocalDiscoveryOptions local;
    local.network_id = options.network_id;
    local.node_id = host_.id();
    questions.port = [port = options.port] { return std::optional(port); };
    add(rendezvous::make_local_discovery(host_.executor(), host_.clock(), local), questions, {});
  }
  if (!options.mainline) return;
  rendezvous::MainlineOptions mainline;
  mainline.network_id = options.network_id;
  mainline.listen = {host_.endpoint().ip, 0};
  mainline.bootstrap = options.mainline_nodes;
  mainline.seed = rng_.next();
  mainline.one_lan = all_private(options.mainline_nodes);
  // Without peers, no node can verify that this one is reachable, so its port is announced unverified.
  questions.port = [&member, port = options.port]() -> std::optional<std::uint16_t> {
    if (const auto advertised = member.advertised()) return advertised->port;
    return member.alone() ? std::optional(port) : std::nullopt;
  };
  rendezvous::SeekerOptions seeker;
  seeker.patience = mainline.one_lan ? Duration(0) : options.mainline_patience;
  const auto network = network_module::load_network_module();
  add(network.ok() ? network->make_mainline(host_.executor(), mainline)
                   : Expected<std::unique_ptr<rendezvous::Rendezvous>>(network.error()),
      questions, seeker);
}

void PeerDiscovery::add(Expected<std::unique_ptr<rendezvous::Rendezvous>> rendezvous,
                        rendezvous::SeekerQuestions questions, rendezvous::SeekerOptions options) {
  if (!rendezvous.ok())
    return logger_.warning("swarm", "a way to find peers is not available: " + rendezvous.error().describe());
  Place place;
  place.rendezvous = std::move(*rendezvous);
  place.seeker = std::make_unique<rendezvous::Seeker>(*place.rendezvous, host_.executor(), host_.clock(),
                                                      logger_, std::move(questions), options, rng_.next());
  places_.push_back(std::move(place));
}

}  // namespace neuroshard::runtime
