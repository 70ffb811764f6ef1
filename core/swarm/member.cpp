#include "core/swarm/member.h"

#include <algorithm>

namespace neuroshard::swarm {

Member::Member(MemberServices services, MemberOptions options, std::uint64_t seed)
    : services_(services),
      options_(std::move(options)),
      id_(crypto::node_id(services.key.public_key())),
      seed_(seed),
      rng_(seed),
      book_(options_.network_id, options_.one_lan),
      gate_({options_.one_lan, services.on_own_subnet}, services.clock, seed),
      paths_(services.transport, services.tunnels, book_, services.clock),
      pool_(paths_, services.executor, services.clock, {},
            services.conduct == nullptr ? nullptr : &services.conduct->bans()),
      tracker_(options_.network_id, options_.one_lan, rng_.next()),
      methods_(services.clock, services.conduct, services.ranks),
      public_calls_(std::make_shared<net::RequestLimiter>(public_call_limits, options_.one_lan, seed)),
      reach_(context(), methods_, public_calls_,
             {[this] { on_dialable_changed(); },
              [this] {
                advertise_endpoints();
                advertiser_.publish(table_.table());
              },
              [this] { return bootstrap_.connections(); }}),
      advertiser_(context(), reach_,
                  [this](const std::vector<net::NodeRecord>& records, const net::Caller& informant) {
                    bootstrap_.take_peers(records, informant, {});
                  }),
      answers_({services.transport, services.clock, book_, options_.tracker ? &tracker_ : nullptr,
                &advertiser_.record(), services.relay,
                [this](const net::Caller& from, const net::NodeRecord& record) {
                  bootstrap_.introduced(from, record);
                }},
               methods_, public_calls_, options_.one_lan, rng_.next()),
      table_(context(), methods_, advertiser_, reach_, [this] { bootstrap_.remember_good(); }),
      bootstrap_(context(), table_, advertiser_, reach_) {
  paths_.set_gate(gate_, services.executor);
  answers_.set_relaying(reach_.relays_for_others());
}

Member::~Member() = default;

MemberContext Member::context() {
  return {services_, options_, id_, rng_, seed_, book_, gate_, paths_, pool_};
}

void Member::start() {
  advertiser_.renew();
  bootstrap_.start();
  timer_ = services_.executor.post_after(options_.heartbeat, [this] { upkeep(); });
}

void Member::set_members(std::function<bool(const net::NodeId&)> is_member) {
  is_member_ = is_member;
  book_.set_members(std::move(is_member));
}

void Member::upkeep() {
  bootstrap_.remember_good();
  book_.drop_expired(services_.clock.wall_now());
  reach_.update_relay_offer();
  if (advertiser_.renewal_due()) {
    advertiser_.renew();
    bootstrap_.introduce_to_trackers();
    advertiser_.publish(table_.table());
  }
  advertiser_.publish_slots(table_.table());
  bootstrap_.keep_one();
  reach_.verify_if_due();
  reach_.update_relays();
  advertiser_.exchange_records();
  keep_neighbours();
  tell_conduct_who_is_known();
  reach_.update_own_path();
  paths_.punch_relayed();
  paths_.ask_for_turn_permissions();
  timer_ = services_.executor.post_after(options_.heartbeat, [this] { upkeep(); });
}

// Trackers and first peers get the new record at once, so that they can tell others where this node is.
void Member::advertise_endpoints() {
  answers_.set_relaying(reach_.relays_for_others());
  advertiser_.set_endpoints(reach_.endpoints());
  bootstrap_.introduce_to_all();
  advertiser_.introduce_itself();
}

void Member::on_dialable_changed() {
  table_.replace();  // as a member, or as a client
  advertise_endpoints();
  bootstrap_.join_table();
}

// A few peers stay connected. A small network is then one mesh, and a punched connection need not be punched
// again for each call.
void Member::keep_neighbours() {
  constexpr std::size_t neighbours = 8;
  constexpr Duration pause = std::chrono::seconds(25);  // twice before a connection counts as idle
  constexpr Duration patience = std::chrono::seconds(2);
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now - neighbours_kept_ < pause) return;
  neighbours_kept_ = now;
  std::size_t kept = 0;
  for (const net::PeerView& peer : pool_.peers()) {
    if (!peer.connected || ++kept > neighbours) continue;
    pool_.call({peer.id, peer.endpoint}, net::Method::Ping, {}, net::call_deadline(patience, 0, 0),
               [](const Expected<Bytes>&) {});
  }
}

void Member::tell_conduct_who_is_known() {
  if (services_.conduct == nullptr) return;
  const WallTime now = services_.clock.wall_now();
  std::vector<net::KnownNode> nodes;
  for (const net::NodeRecord* record : book_.proven(now)) {
    nodes.push_back({record->id(), {}});
    for (const net::NodeEndpoint& at : record->endpoints)
      if (at.reach == net::Reach::Direct) nodes.back().addresses.push_back(at.endpoint.ip);
  }
  if (is_member_)
    for (const net::NodeRecord* record : book_.all(now))
      if (const net::NodeId id = record->id(); is_member_(id)) nodes.push_back({id, {}});
  services_.conduct->set_known(nodes);
}

void Member::on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) {
  const auto traffic = paths_.traffic();
  traffic->count(from.id, request.size(), 0);
  methods_.on_call(from, method, std::move(request),
                   [traffic, id = from.id, respond = std::move(respond)](Expected<Bytes> answer) {
                     if (answer.ok()) traffic->count(id, 0, answer->size());
                     respond(std::move(answer));
                   });
}

void Member::on_stream(const net::Caller& from, net::Method method, std::shared_ptr<net::PeerStream> stream) {
  methods_.on_stream(from, method, std::move(stream));
}

std::optional<net::Contact> Member::find(const net::NodeId& id) const {
  const net::NodeRecord* record = book_.find(id, services_.clock.wall_now());
  if (record != nullptr) {
    if (const auto contact = paths_.contact_of(*record, options_.one_lan)) return contact;
  }
  return bootstrap_.connected(id);
}

std::vector<net::Contact> Member::some(std::size_t most) {
  std::vector<net::Contact> contacts;
  const auto add = [&](const net::NodeId& id) {
    const auto same = [&](const net::Contact& one) { return one.id == id; };
    if (contacts.size() >= most || id == id_ || std::any_of(contacts.begin(), contacts.end(), same)) return;
    if (const auto contact = find(id)) contacts.push_back(*contact);
  };
  const auto add_some_of = [&](std::vector<const net::NodeRecord*> records) {
    std::erase_if(records, [](const net::NodeRecord* record) { return record->endpoints.empty(); });
    const std::size_t all = records.size();
    for (const net::NodeRecord* record : net::spread(std::move(records), all, rng_)) add(record->id());
  };
  const WallTime now = services_.clock.wall_now();
  add_some_of(book_.proven(now));
  for (const FirstConnection& peer : bootstrap_.connections())
    if (!peer.tracker) add(peer.channel->id());
  if (contacts.size() < most) add_some_of(book_.all(now));
  return contacts;
}

MemberView Member::view() const {
  MemberView view;
  static_cast<ReachabilityView&>(view) = reach_.view();
  view.relaying = reach_.relays_for_others();
  if (view.relaying) view.relayed_nodes = services_.relay->joined();
  view.traffic = paths_.traffic()->sum();
  view.upload = advertiser_.record().upload;
  view.download = advertiser_.record().download;
  view.known = book_.size();
  view.forged = book_.forged() + tracker_.forged();
  view.table = table_.table().table().size();
  view.sources = bootstrap_.view();
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
