#include "core/swarm/member.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/swarm/detail/member_source.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr std::size_t answer_bytes = 100u << 10;  // of a list of records
constexpr std::size_t most_greetings = 8, most_told = 1024;

}  // namespace

Member::Member(MemberServices services, MemberOptions options, std::uint64_t seed)
    : services_(services),
      options_(std::move(options)),
      id_(crypto::node_id(services.key.public_key())),
      rng_(seed),
      book_(options_.network_id),
      paths_(services.transport, services.tunnels, book_, services.clock),
      pool_(paths_, services.executor, services.clock, {},
            services.conduct == nullptr ? nullptr : &services.conduct->bans()),
      tracker_(options_.network_id, options_.one_lan, rng_.next()),
      answers_(
          {services.transport, services.clock, book_, options_.tracker ? &tracker_ : nullptr, &record_,
           services.relay, services.conduct, [this](const net::NodeRecord& record) { introduced(record); }},
          options_.one_lan, rng_.next()),
      record_(options_.facts),
      slot_keys_(id_),
      reach_(options_.port, services.clock,
             {[this] { reach_changed(); },
              [this](const platform::IpAddress& seen_at) {
                if (puncher_) puncher_->look_again();
                if (services_.router != nullptr) services_.router->open(seen_at);
              }}),
      turn_door_(services.clock, options_.one_lan, services.conduct,
                 [this](const platform::IpAddress& peer, std::function<void(Expected<void>)> done) {
                   services_.tunnels->let_in(peer, std::move(done));  // it gave the place
                 }) {
  turn_trouble_ = options_.turn_trouble;
  tell_own_place();
  add_cached();
  for (const FirstPeer& peer : options_.sources) {
    NS_CHECK(peer.name.empty() || services_.names != nullptr);
    sources_.push_back(std::make_unique<Source>());
    sources_.back()->peer = peer;
    sources_.back()->dial = {peer.endpoint, peer.id};
  }
  answers_.set_relaying(relays_for_others());
  services_.transport.set_hello(own_hello());
  if (services_.tunnels != nullptr) {
    services_.tunnels->set_events(
        {[this, alive = alive_](const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer) {
           if (*alive) return reserve_at(relay, answer);
           answer(make_error(ErrorCode::Cancelled, "stopped"));
         },
         [this, alive = alive_](std::optional<platform::Endpoint> relay, std::string trouble) {
           if (*alive) held_at(relay, std::move(trouble));
         },
         [this, alive = alive_](const nat::Tunnels::Found& found) {
           if (*alive) return find_turn(found);
           found(make_error(ErrorCode::Cancelled, "stopped"));
         },
         [this, alive = alive_](std::optional<platform::Endpoint> at, std::string trouble) {
           if (*alive) turned(at, std::move(trouble));
         }});
  }
  make_puncher();
  make_table();
}

Member::~Member() {
  *alive_ = false;
}

std::unique_ptr<TimerHandle> Member::later(Duration delay, std::function<void()> task) {
  return services_.executor.post_after(delay, [alive = alive_, task = std::move(task)] {
    if (*alive) task();
  });
}

void Member::make_table() {
  slot_keys_.begin_anew();
  dht::DhtConfig config;
  config.member_port = reach_.advertised() ? reach_.advertised()->port : 0;
  config.one_lan = options_.one_lan;
  dht_ = std::make_unique<dht::DhtNode>(
      options_.network_id, config,
      dht::DhtServices{services_.key, pool_, services_.executor, services_.clock, services_.conduct},
      rng_.next());
}

void Member::start() {
  renew_record();
  if (!options_.cached.empty())
    services_.logger.info("swarm",
                          fmt::format("begins with {} peer(s) of the last time", good_.list().size()));
  if (sources_.empty())
    services_.logger.info("swarm", "no tracker and no first peer is known: waiting for others to call");
  for (const auto& source : sources_) try_source(*source);
  timer_ = later(options_.heartbeat, [this] { upkeep(); });
}

void Member::renew_record() {
  const WallTime now = services_.clock.wall_now();
  record_.sequence = std::max(record_.sequence + 1, static_cast<std::uint64_t>(to_unix_ms(now)));
  record_.made = now;
  record_.expires = now + std::chrono::duration_cast<std::chrono::milliseconds>(options_.record_life);
  record_.features = services_.transport.hello().features;
  record_.version = services_.transport.hello().version;
  record_.program = options_.program;
  if (capacity_) {
    record_.memory_bytes = capacity_->memory_bytes;
    record_.tokens_per_second = capacity_->tokens_per_second;
    record_.slots = capacity_->slots;
  }
  if (services_.line != nullptr) {
    record_.upload = services_.line->speed(net::LineWay::Up);
    record_.download = services_.line->speed(net::LineWay::Down);
  }
  // Nobody would believe the record with it.
  if (record_.delegation && now >= record_.delegation->expires) {
    services_.logger.warning("swarm", "the wallet's word for this node has ended: it names no wallet now");
    record_.delegation.reset();
  }
  record_made_ = services_.clock.monotonic_now();
  if (const auto is_signed = net::sign_node_record(record_, services_.key, options_.network_id);
      !is_signed.ok())
    services_.logger.error("swarm", "this node's record can't be made: " + is_signed.error().describe());
}

void Member::publish_record() {
  if (dht_->table().size() > 0)
    dht_->publish("/nodes/" + to_hex(id_), net::encode_node_record(record_),
                  [](const Expected<dht::Published>&) {});
}

void Member::set_capacity(Capacity capacity) {
  slot_keys_.set(capacity.gives ? capacity.slots : std::vector<net::HeldSlot>());
  capacity_ = std::move(capacity);
}

bool Member::capacity_changed() const {
  if (!capacity_) return false;
  if (capacity_->slots != record_.slots) return true;  // when a model is loaded, or put away
  if (services_.clock.monotonic_now() - record_made_ < options_.capacity_told) return false;
  const auto differs = [](std::uint64_t now, std::uint64_t told) {
    return (now > told ? now - told : told - now) > told / 10;
  };
  return differs(capacity_->memory_bytes, record_.memory_bytes) ||
         differs(capacity_->tokens_per_second, record_.tokens_per_second);
}

// What is measured of a line varies: only what others would choose differently for is news.
bool Member::line_changed() const {
  if (services_.line == nullptr || services_.clock.monotonic_now() - record_made_ < options_.capacity_told)
    return false;
  const auto differs = [](std::uint64_t now, std::uint64_t told) {
    return (now > told ? now - told : told - now) > told / 4;
  };
  return differs(services_.line->speed(net::LineWay::Up), record_.upload) ||
         differs(services_.line->speed(net::LineWay::Down), record_.download);
}

void Member::take_peers(const std::vector<net::NodeRecord>& records, std::vector<net::Contact> contacts) {
  const WallTime now = services_.clock.wall_now();
  const bool alone = dht_->table().size() == 0;
  if (!alone) contacts.clear();
  for (const net::NodeRecord& record : records) {
    const bool known = book_.find(record.id(), now) != nullptr;
    if (record.id() == id_ || !book_.put(record, now).ok() || (known && !alone)) continue;
    for (const net::NodeEndpoint& at : record.endpoints) {
      const bool dialled = options_.one_lan || platform::globally_routable(at.endpoint.ip);
      if (at.reach == net::Reach::Direct && dialled) contacts.push_back({record.id(), at.endpoint});
    }
  }
  paths_.ask_to_be_let_in();  // a place at a TURN server may be news
  greet();
  if (contacts.empty()) return;
  dht_->join(std::move(contacts), [this, alive = alive_](std::size_t known) {
    if (!*alive) return;
    services_.logger.info("swarm", fmt::format("the hash table knows {} member(s)", known));
    if (known == 0) return;
    remember_good();
    dht_->publish("/nodes/" + to_hex(id_), net::encode_node_record(record_),
                  [](const Expected<dht::Published>&) {});
  });
}

void Member::upkeep() {
  remember_good();
  book_.drop_expired(services_.clock.wall_now());
  const bool word_ended = record_.delegation && services_.clock.wall_now() >= record_.delegation->expires;
  if (word_ended || capacity_changed() || line_changed() ||
      services_.clock.monotonic_now() - record_made_ > options_.record_life / 2) {
    renew_record();
    for (const auto& source : sources_)
      if (source->channel && source->tracker && !source->busy) introduce(*source);
    publish_record();
  }
  if (dht_->table().size() > 0) slot_keys_.step(*dht_);
  keep_reach();
  find_relays();
  exchange_peers();
  keep_neighbours();
  tell_own_place();
  paths_.punch_what_can_be();
  paths_.ask_to_be_let_in();
  timer_ = later(options_.heartbeat, [this] { upkeep(); });
}

// Others can call this node only when they know where it is: those whom a newcomer hears of first need not
// wait for its next heartbeats.
void Member::greet() {
  if (greeting_ || greetings_ >= most_greetings || !placed() || strangers().empty()) return;
  ++greetings_;
  greeting_ = true;
  exchange_peers();
}

// Where it can be called is known, or that it can't be.
bool Member::placed() const {
  return reach_.tested() || !record_.endpoints.empty();
}

std::vector<net::Contact> Member::strangers() const {
  std::vector<net::Contact> found;
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now()))
    if (told_.count(record->id()) == 0)
      if (const auto contact = paths_.contact_of(*record, options_.one_lan)) found.push_back(*contact);
  return found;
}

// One node tells whom it knows, and hears where this one is: one that has not heard it yet, or a random one.
void Member::exchange_peers() {
  if (told_.size() > most_told) told_.clear();
  std::vector<net::Contact> from = strangers();
  if (from.empty()) {
    for (const net::NodeRecord* record : book_.all(services_.clock.wall_now()))
      if (const auto contact = paths_.contact_of(*record, options_.one_lan)) from.push_back(*contact);
  }
  if (from.empty()) return;
  const net::Contact chosen = from[rng_.below(from.size())];
  told_.insert(chosen.id);
  Bytes request = encode_peers_request(max_records, &record_);
  const Duration deadline = net::call_deadline(call_patience, request.size(), answer_bytes);
  pool_.call(chosen, net::Method::Peers, std::move(request), deadline,
             [this, alive = alive_](const Expected<Bytes>& answer) {
               if (!*alive) return;
               greeting_ = false;
               const auto records = answer.ok() ? decode_records(*answer)
                                                : Expected<std::vector<net::NodeRecord>>(answer.error());
               if (records.ok()) take_peers(*records, {});
               greet();
             });
}

// A few of those that it talks with stay connected: a small network is then one mesh, and a direct way that
// was punched is not given up and dug again with each call.
void Member::keep_neighbours() {
  constexpr std::size_t neighbours = 8;
  constexpr Duration pause = std::chrono::seconds(25);  // twice before a connection counts as idle
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now - neighbours_kept_ < pause) return;
  neighbours_kept_ = now;
  std::size_t kept = 0;
  for (const net::PeerView& peer : pool_.peers()) {
    if (!peer.connected || ++kept > neighbours) continue;
    pool_.call({peer.id, peer.endpoint}, net::Method::Ping, {}, net::call_deadline(call_patience, 0, 0),
               [](const Expected<Bytes>&) {});
  }
}

void Member::on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond answer) {
  const auto traffic = paths_.traffic();
  traffic->count(from.id, request.size(), 0);
  net::Respond respond = [traffic, id = from.id, answer = std::move(answer)](Expected<Bytes> bytes) {
    if (bytes.ok()) traffic->count(id, 0, bytes->size());
    answer(std::move(bytes));
  };
  if (answers_.answer(from, method, request, respond)) return;
  if (method == net::Method::Punch && puncher_) return puncher_->answer(from, request, respond);
  if (method == net::Method::LetIn)
    return turn_door_.answer(from, request, /*has_place=*/turn_.has_value(), respond);
  const auto value = static_cast<std::uint16_t>(method);
  if (value >= static_cast<std::uint16_t>(net::Method::DhtPing) &&
      value <= static_cast<std::uint16_t>(net::Method::DhtStore))
    return dht_->handle(from, method, request, respond);
  if (protocol_ && protocol_(from, method, request, respond)) return;
  if (exchange_ && exchange_(from, method, request, respond)) return;
  respond(make_error(ErrorCode::Unsupported, "this node does not know that request"));
}

void Member::on_stream(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
  stream->break_off(make_error(ErrorCode::Unsupported, "this node serves no streams yet"));
}

std::optional<net::Contact> Member::find(const net::NodeId& id) const {
  const net::NodeRecord* record = book_.find(id, services_.clock.wall_now());
  if (record != nullptr) {
    if (const auto contact = paths_.contact_of(*record, options_.one_lan)) return contact;
  }
  // A first peer that nobody has dialled from outside yet is reached where it was found.
  for (const auto& source : sources_)
    if (source->channel && source->channel->id() == id) return net::Contact{id, source->channel->endpoint()};
  return std::nullopt;
}

std::vector<net::Contact> Member::some(std::size_t most) {
  std::vector<net::NodeId> ids;
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now())) ids.push_back(record->id());
  for (const auto& source : sources_)
    if (source->channel && !source->tracker) ids.push_back(source->channel->id());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<net::Contact> contacts;
  for (std::size_t i = 0; i < ids.size() && contacts.size() < most; ++i) {
    std::swap(ids[i], ids[i + rng_.below(ids.size() - i)]);
    if (ids[i] == id_) continue;
    if (const auto contact = find(ids[i])) contacts.push_back(*contact);
  }
  return contacts;
}

MemberView Member::view() const {
  MemberView view;
  view.advertised = reach_.advertised();
  view.reachable = view.advertised.has_value();
  view.tested = reach_.tested();
  view.testing = reach_.trying();
  view.tested_at = reach_.tested_at();
  view.seen_at = reach_.seen_at();
  view.why_not = reach_.why_not();
  view.verdict = puncher_ ? reach_.verdict(puncher_->finding()) : reach_.verdict();
  view.relay = relay_;
  view.relay_trouble = relay_trouble_;
  view.turn_server = options_.turn_server;
  view.turn = turn_;
  view.turn_trouble = turn_trouble_;
  view.relaying = relays_for_others();
  if (view.relaying) view.relayed_nodes = services_.relay->joined();
  view.traffic = paths_.traffic()->sum();
  view.upload = record_.upload;
  view.download = record_.download;
  view.known = book_.size();
  view.forged = book_.forged() + tracker_.forged();
  view.table = dht_->table().size();
  for (const auto& source : sources_)
    view.sources.push_back({source->dial.endpoint, source->peer.name, source->channel != nullptr,
                            source->tracker, source->state});
  for (net::PeerView& connection : pool_.peers()) {
    MemberPeer peer;
    const PathTransport::Path path = paths_.path_to(connection.id, connection.endpoint);
    peer.way = path.way;
    if (connection.connected) connection.endpoint = path.at;
    peer.traffic = paths_.traffic()->of(connection.id);
    if (const auto* record = book_.find(connection.id, services_.clock.wall_now()); record != nullptr) {
      peer.memory_bytes = record->memory_bytes;
      peer.tokens_per_second = record->tokens_per_second;
      peer.upload = record->upload;
      peer.download = record->download;
    }
    peer.connection = std::move(connection);
    view.peers.push_back(std::move(peer));
  }
  return view;
}

}  // namespace neuroshard::swarm
