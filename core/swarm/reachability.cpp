#include "core/swarm/reachability.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr Duration dial_back_patience = std::chrono::seconds(6);  // the other node dials within 4
constexpr std::size_t answer_bytes = 1024;
constexpr std::size_t small_request = 1024;
constexpr std::size_t first_peer_answer_bytes = 100u << 10;
constexpr std::size_t most_relays = 8;  // to choose from

ReachKeeper::Observer observer_of(const net::PeerChannel& channel) {
  return platform::prefix_group(channel.endpoint().ip);
}

}  // namespace

platform::Endpoint turn_server_at(std::vector<platform::Endpoint> addresses, std::size_t tries) {
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const platform::Endpoint& one) { return one.ip.is_v4(); });
  return addresses[tries % addresses.size()];
}

Reachability::Reachability(const MemberContext& context, net::MethodTable& methods,
                           const std::shared_ptr<net::RequestLimiter>& calls, Events events)
    : context_(context),
      events_(std::move(events)),
      keeper_(context.options.port, context.services.clock,
              {[this] { on_reach_changed(); },
               [this](const platform::IpAddress& seen_at) {
                 if (puncher_) puncher_->restart_probe();
                 if (context_.services.router != nullptr) context_.services.router->open(seen_at);
               }}),
      turn_trouble_(context.options.turn_trouble),
      turn_ingress_(context.services.clock, context.options.one_lan, context.table_seed,
                    [this](const platform::IpAddress& peer, std::function<void(Expected<void>)> done) {
                      // Tunnels exist: they gave the place that a caller asks for.
                      context_.services.tunnels->let_in(peer, std::move(done));
                    }) {
  update_own_path();
  if (context_.services.has_relay_data) has_relay_data_ = context_.services.has_relay_data();
  context_.services.transport.set_hello(own_hello());
  listen_to_tunnels();
  if (context_.services.tunnels != nullptr && context_.options.port != 0) {
    puncher_ = std::make_unique<Puncher>(
        *context_.services.tunnels, context_.services.clock, context_.options.one_lan, context_.table_seed,
        [this] { on_punchable_changed(); }, &context_.gate);
    context_.paths.set_puncher(puncher_.get());
    methods_.push_back(
        methods.add({net::Method::Punch}, net::MethodLimits(calls, small_request),
                    [this](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                      puncher_->answer(from, request, reply);
                    }));
  }
  methods_.push_back(
      methods.add({net::Method::LetIn}, net::MethodLimits(calls, small_request),
                  [this](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                    turn_ingress_.answer(from, request, /*has_place=*/turn_.has_value(), reply);
                  }));
}

Reachability::~Reachability() {
  context_.paths.set_puncher(nullptr);
}

void Reachability::listen_to_tunnels() {
  if (context_.services.tunnels == nullptr) return;
  context_.services.tunnels->set_events(
      {[this, life = lifetime_.token()](const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer) {
         if (life.alive()) return reserve_at(relay, answer);
         answer(make_error(ErrorCode::Cancelled, "stopped"));
       },
       [this, life = lifetime_.token()](std::optional<platform::Endpoint> relay, std::string trouble) {
         if (life.alive()) on_relay_changed(relay, std::move(trouble));
       },
       [this, life = lifetime_.token()](const nat::Tunnels::Found& found) {
         if (life.alive()) return find_turn_server(found);
         found(make_error(ErrorCode::Cancelled, "stopped"));
       },
       [this, life = lifetime_.token()](std::optional<platform::Endpoint> at, std::string trouble) {
         if (life.alive()) on_turn_changed(at, std::move(trouble));
       }});
}

// Every node that asks a tracker has dialled it. Another node relays once a node has dialled it.
bool Reachability::relays_for_others() const {
  return context_.services.relay != nullptr && has_relay_data_ &&
         (context_.options.tracker || keeper_.advertised());
}

// A relay without data takes nobody. Nodes that need a relay look for it in hellos and records.
void Reachability::update_relay_offer() {
  if (context_.services.relay == nullptr || !context_.services.has_relay_data) return;
  const bool offered = relays_for_others();
  has_relay_data_ = context_.services.has_relay_data();
  if (offered == relays_for_others()) return;
  context_.services.logger.info("swarm", offered ? "no data is left to relay for other nodes (monthly_data)"
                                                 : "there is data to relay for other nodes again");
  context_.services.transport.set_hello(own_hello());
  events_.endpoints_changed();
}

net::Hello Reachability::own_hello() const {
  const MemberOptions& options = context_.options;
  net::Hello hello;
  hello.network_id = options.network_id;
  hello.program = options.program;
  if (options.tracker) hello.port = options.port;
  hello.features = net::Feature::Peers | net::Feature::AddressEcho | net::Feature::DialBack;
  if (keeper_.advertised()) {
    hello.port = keeper_.advertised()->port;
    hello.features = hello.features | net::Feature::Dht;
  }
  if (options.tracker) hello.features = hello.features | net::Feature::Tracker;
  if (puncher_ && puncher_->punchable()) hello.features = hello.features | net::Feature::Punch;
  if (relays_for_others()) hello.features = hello.features | net::Feature::Relay;
  return hello;
}

void Reachability::update_own_path() {
  context_.paths.set_own({context_.options.one_lan, keeper_.advertised().has_value(), keeper_.seen_at()});
}

// ---- Direct: the dial-back.

void Reachability::seen(const net::PeerChannel& by, const platform::Endpoint& at) {
  const ReachKeeper::Observer observer = observer_of(by);
  if (!context_.options.listens_in_version_of(at.ip)) {
    dialable_.erase(observer);
    undialable_[observer] = at;
    return count_undialable();
  }
  for (const auto& [one, elsewhere] : undialable_) keeper_.gone(one);
  undialable_.erase(observer);
  dialable_.insert(observer);
  keeper_.seen(observer, at);
}

void Reachability::count_undialable() {
  if (!dialable_.empty()) return;
  for (const auto& [observer, at] : undialable_) keeper_.seen(observer, at);
}

void Reachability::gone(const net::PeerChannel& observer) {
  const auto all = events_.first_connections();
  const bool others = std::any_of(all.begin(), all.end(), [&](const FirstConnection& peer) {
    return observer_of(*peer.channel) == observer_of(observer);
  });
  if (others) return;
  dialable_.erase(observer_of(observer));
  undialable_.erase(observer_of(observer));
  keeper_.gone(observer_of(observer));
  count_undialable();
}

bool Reachability::due(const net::PeerChannel& observer) const {
  return keeper_.due(observer_of(observer));
}

void Reachability::verify_through(const std::shared_ptr<net::PeerChannel>& channel,
                                  const std::function<void()>& done) {
  // The connection belongs to the bootstrap, which may close it meanwhile.
  const auto ask = [life = lifetime_.token(), weak = std::weak_ptr<net::PeerChannel>(channel)](
                       std::uint16_t port, ReachKeeper::DialledBack dialled) {
    const auto asked = weak.lock();
    if (!asked) return dialled(make_error(ErrorCode::Unavailable, "the asked node is gone"));
    constexpr std::size_t request_bytes = 2;
    asked->call(net::Method::DialBack, encode_port(port),
                net::call_deadline(dial_back_patience, request_bytes, answer_bytes),
                [life, dialled = std::move(dialled)](const Expected<Bytes>& answer) {
                  if (!life.alive()) return;
                  dialled(answer.ok() ? decode_dial_back(*answer) : Expected<DialBackAnswer>(answer.error()));
                });
  };
  keeper_.verify(observer_of(*channel), ask, done);
}

void Reachability::verify_if_due() {
  std::vector<std::shared_ptr<net::PeerChannel>> askable;
  for (const FirstConnection& peer : events_.first_connections())
    if (!peer.busy && due(*peer.channel) && peer.channel->hello().offers(net::Feature::DialBack))
      askable.push_back(peer.channel);
  if (askable.empty()) return;
  verify_through(askable[context_.rng.below(askable.size())], [] {});
}

void Reachability::test_again() {
  keeper_.test_again();
  if (puncher_) puncher_->restart_probe();
  if (context_.services.router != nullptr && keeper_.seen_at())
    context_.services.router->open(keeper_.seen_at()->ip);
  verify_if_due();
}

void Reachability::on_reach_changed() {
  if (const auto at = keeper_.advertised())
    context_.services.logger.info("swarm", "reached from outside at " + platform::to_text(*at));
  else
    context_.services.logger.warning("swarm", "not reached from outside any more: " + keeper_.why_not());
  context_.services.transport.set_hello(own_hello());
  update_own_path();
  events_.dialable_changed();
  update_relays();
}

std::vector<net::NodeEndpoint> Reachability::endpoints() const {
  std::vector<net::NodeEndpoint> endpoints;
  const auto add = [&endpoints](net::Reach reach, const std::optional<platform::Endpoint>& at) {
    if (at) endpoints.push_back({reach, *at});
  };
  if (keeper_.advertised()) {
    add(net::Reach::Direct, keeper_.advertised());
  } else {
    // Both: a node that the TURN server does not let in asks for permission through the relay.
    add(net::Reach::Turn, turn_);
    add(net::Reach::Relayed, relay_);
  }
  return endpoints;
}

// ---- Punched connections.

void Reachability::on_punchable_changed() {
  if (puncher_->punchable())
    context_.services.logger.info("swarm",
                                  "direct connections with nodes behind ordinary routers are possible");
  context_.services.transport.set_hello(own_hello());
  events_.endpoints_changed();
  if (puncher_->punchable()) context_.paths.punch_relayed();
}

// ---- Relays.

void Reachability::on_relay_changed(std::optional<platform::Endpoint> relay, std::string trouble) {
  relay_trouble_ = std::move(trouble);
  if (relay == relay_) return;
  relay_ = relay;
  if (relay_)
    context_.services.logger.info("swarm",
                                  "others reach this node through the relay " + platform::to_text(*relay_));
  else
    context_.services.logger.info("swarm", "no relay stands in for this node: " + relay_trouble_);
  events_.endpoints_changed();
}

// The present relay first, so that it stays while it can.
std::vector<platform::Endpoint> Reachability::known_relays() const {
  std::vector<platform::Endpoint> relays;
  const auto add = [&relays](const platform::Endpoint& at) {
    if (relays.size() < most_relays && std::find(relays.begin(), relays.end(), at) == relays.end())
      relays.push_back(at);
  };
  if (relay_) add(*relay_);
  for (const FirstConnection& peer : events_.first_connections())
    if (peer.channel->hello().offers(net::Feature::Relay)) add(peer.channel->endpoint());
  for (const net::NodeRecord* record : context_.book.all(context_.services.clock.wall_now())) {
    const auto contact = context_.paths.contact_of(*record, context_.options.one_lan);
    if (contact && (record->features & static_cast<std::uint64_t>(net::Feature::Relay)) != 0 &&
        context_.book.is_proven(contact->id, contact->endpoint) &&
        context_.paths.way_to(contact->id, contact->endpoint) == Way::Direct)
      add(contact->endpoint);
  }
  return relays;
}

// While nobody can dial this node, one of the nodes that relay stands in for it.
void Reachability::update_relays() {
  if (context_.services.tunnels == nullptr || context_.options.port == 0) return;
  std::vector<platform::Endpoint> relays;
  if (keeper_.tested() && !keeper_.advertised()) {
    relays = known_relays();
    if (relays.empty()) relay_trouble_ = "no node that relays is known";
  }
  context_.services.tunnels->hold(relays);
  update_turn();
  if (!puncher_) return;
  // Relays answer STUN requests, too. None: others dial this node, or that is not known yet.
  puncher_->set_servers(std::move(relays), keeper_.seen_at());
  puncher_->probe_nat();
}

void Reachability::reserve_at(const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer) {
  const auto take = [answer](const Expected<Bytes>& bytes) {
    answer(bytes.ok() ? decode_ticket(*bytes) : Expected<nat::RelayTicket>(bytes.error()));
  };
  for (const FirstConnection& peer : events_.first_connections())
    if (peer.channel->endpoint() == relay)
      return peer.channel->call(net::Method::RelayReserve, {},
                                net::call_deadline(call_patience, 0, first_peer_answer_bytes),
                                [life = lifetime_.token(), take](const Expected<Bytes>& bytes) {
                                  if (life.alive()) take(bytes);
                                });
  for (const net::NodeRecord* record : context_.book.all(context_.services.clock.wall_now()))
    for (const net::NodeEndpoint& at : record->endpoints)
      if (at.reach == net::Reach::Direct && at.endpoint == relay)
        return context_.pool.call({record->id(), relay}, net::Method::RelayReserve, {},
                                  net::call_deadline(call_patience, 0, answer_bytes), take);
  answer(make_error(ErrorCode::NotFound, "this relay is not known any more"));
}

// ---- The user's TURN server.

// The server lets in the nodes of whose addresses this node knows; others ask for permission by LetIn. Places are few: addresses
// that strangers made up come last.
void Reachability::update_turn() {
  std::vector<platform::IpAddress> known;
  if (context_.options.turn_server.empty()) return;
  for (const FirstConnection& peer : events_.first_connections())
    known.push_back(peer.channel->endpoint().ip);
  const auto named = context_.book.direct_addresses(context_.services.clock.wall_now());
  known.insert(known.end(), named.begin(), named.end());
  context_.services.tunnels->hold_turn(keeper_.tested() && !keeper_.advertised(), std::move(known));
}

void Reachability::find_turn_server(const nat::Tunnels::Found& found) {
  const std::string& server = context_.options.turn_server;
  if (const auto endpoint = platform::parse_endpoint(server); endpoint.ok()) return found(*endpoint);
  if (context_.services.names == nullptr)
    return found(make_error(ErrorCode::Unsupported, "this node can't look up names"));
  context_.services.names->look_up(
      server, [this, life = lifetime_.token(), found](const Expected<std::vector<platform::Endpoint>>& at) {
        if (!life.alive()) return found(make_error(ErrorCode::Cancelled, "stopped"));
        if (!at.ok()) return found(at.error());
        if (at->empty()) return found(make_error(ErrorCode::NotFound, "its name has no address"));
        found(turn_server_at(*at, turn_tries_++));
      });
}

void Reachability::on_turn_changed(std::optional<platform::Endpoint> at, std::string trouble) {
  turn_trouble_ = std::move(trouble);
  if (at)
    context_.services.logger.info(
        "swarm", fmt::format("nodes that it lets in dial this node at {}, through the TURN server {}",
                             platform::to_text(*at), context_.options.turn_server));
  else if (!turn_trouble_.empty())
    context_.services.logger.warning(
        "swarm",
        fmt::format(
            "the TURN server {} is not available: {}; other nodes relay, and this node tries it again",
            context_.options.turn_server, turn_trouble_));
  if (at) turn_tries_ = 0;
  if (at == turn_) return;
  turn_ = at;
  events_.endpoints_changed();
}

ReachabilityView Reachability::view() const {
  ReachabilityView view;
  view.advertised = keeper_.advertised();
  view.reachable = view.advertised.has_value();
  view.tested = keeper_.tested();
  view.testing = keeper_.trying();
  view.tested_at = keeper_.tested_at();
  view.seen_at = keeper_.seen_at();
  view.why_not = keeper_.why_not();
  view.verdict = puncher_ ? keeper_.verdict(puncher_->finding()) : keeper_.verdict();
  view.relay = relay_;
  view.relay_trouble = relay_trouble_;
  view.turn_server = context_.options.turn_server;
  view.turn = turn_;
  view.turn_trouble = turn_trouble_;
  return view;
}

}  // namespace neuroshard::swarm
