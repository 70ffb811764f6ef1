#include "core/swarm/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/dht/messages.h"
#include "core/net/address_group.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr std::size_t answer_bytes = 100u << 10;  // of a list of records
constexpr std::size_t cached_at_a_time = 4;
constexpr std::size_t most_found = 8;
constexpr std::size_t tries_of_found = 2;
constexpr Duration time_to_name = std::chrono::minutes(1);  // of a found one, until another may replace it
constexpr Duration keep_pause = std::chrono::minutes(1);    // of a node without a connected first peer
// Between two registrations at a tracker that refuses them. The first pause is short: room may come free.
constexpr Duration least_refused = std::chrono::seconds(30);
constexpr Duration longest_refused = std::chrono::minutes(10);

bool is_refusal(const Error& error) {
  return error.code == ErrorCode::Denied || error.code == ErrorCode::Exhausted;
}

bool has_no_other_record(const MemberContext& context) {
  const auto all = context.book.all(context.services.clock.wall_now());
  return std::all_of(all.begin(), all.end(),
                     [&](const net::NodeRecord* record) { return record->id() == context.id; });
}

}  // namespace

// A first peer or tracker.
struct Bootstrap::Source {
  FirstPeer peer;
  net::Dial dial;  // of this try
  bool cached = false;
  bool found = false;            // suggested, by a rendezvous for example: given up after two tries
  bool given_up = false;         // its place is free
  std::size_t tries = 0;         // of a found one, since it answered
  std::size_t next_address = 0;  // of its name; 0 after a connection that worked
  std::shared_ptr<net::PeerChannel> channel;
  MonotonicTime connected{};  // since when the channel is there
  std::string state = "not tried yet";
  Duration pause{0};
  bool tracker = false, busy = false;
  bool beating = false;  // a heartbeat or a question for peers has no answer yet: no other call begins
  std::uint64_t beats = 0;
  std::uint64_t informed = 0;  // sequence of the record that it was given
  std::string refusal;         // why this tracker does not register the node; empty: it does
  Duration refused_pause{0};
  MonotonicTime register_at{};  // after a refusal
  std::unique_ptr<TimerHandle> timer;

  // Others wrote the cache's records and the places of a rendezvous.
  bool is_given() const { return !found && !cached; }
  // It has one call at a time: the end of one may drop the channel of another. Each call ends with a look whether the
  // record has changed.
  bool is_free() const { return channel && !busy && !beating; }
  // One of these at random that has had the time to name somebody, if there is one.
  static Source* one_to_yield(std::vector<Source*> of, MonotonicTime now, Rng& rng) {
    std::erase_if(
        of, [now](const Source* one) { return !one->is_free() || now - one->connected < time_to_name; });
    return of.empty() ? nullptr : of[rng.below(of.size())];
  }
  std::string success() const {
    if (!tracker) return "connected";
    if (refusal.empty()) return "registered";
    return "names other nodes, but does not register this one: " + refusal;
  }
  std::string where() const { return peer.name.empty() ? platform::to_text(peer.endpoint) : peer.name; }
};

Bootstrap::Bootstrap(const MemberContext& context, TableMembership& table, Advertiser& advertiser,
                     Reachability& reach)
    : context_(context), table_(table), advertiser_(advertiser), reach_(reach) {
  add_cached();
  for (const FirstPeer& peer : context.options.sources) {
    NS_CHECK(peer.name.empty() || context.services.names != nullptr);
    add_source(peer);
  }
}

Bootstrap::~Bootstrap() = default;

void Bootstrap::start() {
  if (!context_.options.cached.empty())
    context_.services.logger.info("swarm",
                                  fmt::format("begins with {} peer(s) of the last run", good_.list().size()));
  if (sources_.empty())
    context_.services.logger.info("swarm",
                                  "no tracker and no first peer is known: waiting for others to call");
  for (const auto& source : sources_) try_source(*source);
}

std::unique_ptr<TimerHandle> Bootstrap::later(Duration delay, std::function<void()> task) {
  return context_.services.executor.post_after(delay, [life = lifetime_.token(), task = std::move(task)] {
    if (life.alive()) task();
  });
}

Bootstrap::Source& Bootstrap::add_source(const FirstPeer& peer) {
  sources_.push_back(std::make_unique<Source>());
  Source& source = *sources_.back();
  source.peer = peer;
  source.dial = {peer.endpoint, peer.id};
  return source;
}

bool Bootstrap::may_dial(const net::NodeEndpoint& at) const {
  return at.reach == net::Reach::Direct && context_.paths.may_dial(at.endpoint, context_.options.one_lan);
}

// ---- The cache, and peers that were found elsewhere.

// Other programs may have changed the file: a record counts if its own node has signed it.
void Bootstrap::add_cached() {
  const WallTime now = context_.services.clock.wall_now();
  for (const CachedPeer& peer : context_.options.cached) {
    const net::NodeId id = peer.record.id();
    if (id == context_.id || net::never_held(peer.record, context_.options.network_id)) continue;
    const auto at = std::find_if(peer.record.endpoints.begin(), peer.record.endpoints.end(),
                                 [this](const net::NodeEndpoint& e) { return may_dial(e); });
    if (at == peer.record.endpoints.end()) continue;
    good_.heard(peer.record, std::min(peer.heard, now));
    spares_.push_back({at->endpoint, id});
  }
  for (; sources_.size() < cached_at_a_time && !spares_.empty(); spares_.pop_front())
    add_source(spares_.front()).cached = true;
  untried_ = spares_.size();
}

// Another peer of the cache takes the place of one that failed. The pause does not grow until each was tried.
void Bootstrap::next_cached(Source& source) {
  if (spares_.empty()) return;
  spares_.push_back(source.peer);
  source.peer = spares_.front();
  spares_.pop_front();
  source.dial = {source.peer.endpoint, source.peer.id};
  if (untried_ == 0) return;
  --untried_;
  source.pause = Duration(0);
}

void Bootstrap::remember_good() {
  const WallTime now = context_.services.clock.wall_now();
  // The next start dials the first address of its record, which must be one where it answered.
  const auto heard = [&](const net::NodeId& id, const platform::Endpoint& at) {
    const net::NodeRecord* record = context_.book.find(id, now);
    if (record == nullptr || record->endpoints.empty()) return;
    const platform::Endpoint& named = record->endpoints.front().endpoint;
    if (named == at || context_.book.is_proven(id, named)) good_.heard(*record, now);
  };
  for (const net::PeerView& peer : context_.pool.peers())
    if (peer.connected && peer.round_trip) heard(peer.id, peer.endpoint);
  for (const auto& source : sources_)
    if (source->channel && !source->tracker && !source->busy)
      heard(source->channel->id(), source->channel->endpoint());
}

void Bootstrap::suggest(const FirstPeer& peer) {
  if (peer.id == context_.id || reach_.advertised() == peer.endpoint) return;
  const auto group_of = [this](const platform::Endpoint& at) {
    return net::counted_group(at.ip, context_.options.one_lan);
  };
  const auto group = group_of(peer.endpoint);
  std::vector<Source*> found, of_group;
  Source* place = nullptr;
  for (const auto& source : sources_) {
    if (source->given_up) {
      place = source.get();
      continue;
    }
    if (source->dial.endpoint == peer.endpoint) return;
    if (!source->found) continue;
    found.push_back(source.get());
    if (group && group == group_of(source->dial.endpoint)) of_group.push_back(source.get());
  }
  if (!of_group.empty() || found.size() >= most_found) {
    // Strangers may hold the places and name nobody.
    if (!seeks_others()) return;
    place = Source::one_to_yield(of_group.empty() ? found : of_group, context_.services.clock.monotonic_now(),
                                 context_.rng);
    if (place == nullptr) return;
    const auto channel = std::exchange(place->channel, nullptr);
    reach_.gone(*channel);  // once it is not among the connected ones, as in failed()
    context_.services.logger.info("swarm",
                                  fmt::format("{} names nobody: another takes its place", place->where()));
  }
  if (place == nullptr) place = &add_source(peer);
  *place = Source();
  place->found = true;
  place->peer = peer;
  place->dial = {peer.endpoint, peer.id};
  try_source(*place);
}

void Bootstrap::introduced(const net::Caller& from, const net::NodeRecord& record) {
  take_peers({record}, from, {});
  if (any_connected()) return;
  for (const net::NodeEndpoint& at : record.endpoints)
    if (may_dial(at)) return suggest({at.endpoint, record.id()});
}

void Bootstrap::keep_one() {
  const bool has_one = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source->channel != nullptr || source->busy;
  });
  const MonotonicTime now = context_.services.clock.monotonic_now();
  if (has_one || now < one_due_) return;
  one_due_ = now + keep_pause;
  std::vector<FirstPeer> known, connected;
  for (const net::NodeRecord* record : context_.book.proven(context_.services.clock.wall_now())) {
    const auto at = std::find_if(record->endpoints.begin(), record->endpoints.end(),
                                 [this](const net::NodeEndpoint& e) { return may_dial(e); });
    if (at == record->endpoints.end()) continue;
    known.push_back({at->endpoint, record->id()});
    if (context_.pool.connected_at(record->id())) connected.push_back(known.back());
  }
  const std::vector<FirstPeer>& from = connected.empty() ? known : connected;
  if (!from.empty()) suggest(from[context_.rng.below(from.size())]);
}

bool Bootstrap::give_up(Source& source, const Error& error) {
  const bool itself = error.code == ErrorCode::Denied;  // or a node that can never belong to the network
  if (!itself && ++source.tries < tries_of_found) return false;
  source.given_up = true;
  source.state = fmt::format("{}; not tried again", error.describe());
  context_.services.logger.info("swarm", fmt::format("{}: {}", source.where(), source.state));
  return true;
}

// ---- One first peer: dial, own address, dial-back, introduction, its peers; then heartbeats.

void Bootstrap::try_source(Source& source) {
  source.busy = true;
  if (source.peer.name.empty()) return dial(source);
  source.state = "looking the name up";
  context_.services.names->look_up(
      source.peer.name,
      [this, life = lifetime_.token(), &source](const Expected<std::vector<platform::Endpoint>>& found) {
        if (!life.alive()) return;
        if (!found.ok()) return failed(source, found.error());
        if (found->empty()) return failed(source, make_error(ErrorCode::NotFound, "the name has no address"));
        // Others can dial this node where they see it, if it listens at addresses of that IP version.
        std::vector<platform::Endpoint> at = *found;
        std::stable_partition(at.begin(), at.end(), [this](const platform::Endpoint& one) {
          return context_.options.listens_in_version_of(one.ip);
        });
        source.dial = {at[source.next_address++ % at.size()], source.peer.id};
        dial(source);
      });
}

void Bootstrap::dial(Source& source) {
  source.state = "connecting";
  const auto connect = source.is_given() ? &PathTransport::connect_given : &PathTransport::connect;
  (context_.paths.*connect)(
      source.dial, net::connect_deadline,
      [this, life = lifetime_.token(), &source](Expected<std::shared_ptr<net::PeerChannel>> channel) {
        if (!life.alive()) return;
        if (!channel.ok()) return failed(source, channel.error());
        if (source.found && (*channel)->id() == context_.id)
          return failed(source, make_error(ErrorCode::Denied, "this node itself"));
        source.channel = std::move(*channel);
        source.connected = context_.services.clock.monotonic_now();
        source.tracker = source.channel->hello().offers(net::Feature::Tracker);
        source.refusal.clear();
        context_.services.logger.info(
            "swarm", fmt::format("connected to {} {}", source.tracker ? "tracker" : "peer", source.where()));
        learn_address(source);
      });
}

void Bootstrap::failed(Source& source, const Error& error) {
  const auto channel = std::exchange(source.channel, nullptr);
  source.busy = false;
  if (channel) reach_.gone(*channel);  // which can introduce this node anew to those that are still connected
  const std::string where = source.where();
  if (source.found && give_up(source, error)) return;
  if (source.cached) next_cached(source);
  source.pause = std::clamp(source.pause * 2, context_.options.first_pause, context_.options.longest_pause);
  const Duration wait = source.pause / 2 + Duration(static_cast<std::int64_t>(context_.rng.below(
                                               static_cast<std::uint64_t>(source.pause.count()))));
  const std::string why = error.context == where ? error.message : error.describe();
  source.state = fmt::format("{}; tried again in {:.0f} s", why, to_seconds(wait));
  context_.services.logger.info("swarm", fmt::format("{}: {}", where, source.state));
  source.timer = later(wait, [this, &source] { try_source(source); });
}

void Bootstrap::ask(Source& source, net::Method method, Bytes request, Done done) {
  const std::size_t size = request.size();
  source.channel->call(method, std::move(request), net::call_deadline(call_patience, size, answer_bytes),
                       [life = lifetime_.token(), done = std::move(done)](Expected<Bytes> answer) {
                         if (life.alive()) done(std::move(answer));
                       });
}

void Bootstrap::learn_address(Source& source) {
  source.state = "asks for its own address";
  ask(source, net::Method::AddressEcho, {}, [this, &source](const Expected<Bytes>& answer) {
    if (!answer.ok()) return failed(source, answer.error());
    const auto endpoint = dht::decode_endpoint(*answer);
    if (!endpoint.ok()) return failed(source, endpoint.error());
    reach_.seen(*source.channel, *endpoint);
    if (!reach_.due(*source.channel)) return introduce(source);
    source.state = "asks for a dial-back";
    reach_.verify_through(source.channel, [this, life = lifetime_.token(), &source] {
      if (!life.alive()) return;
      if (!reach_.advertised())
        context_.services.logger.info("swarm", "not reached from outside: " + reach_.why_not());
      introduce(source);
    });
  });
}

void Bootstrap::introduce(Source& source) {
  source.busy = true;
  source.timer.reset();
  if (!source.tracker) return fetch_peers(source);
  source.state = "registers";
  source.informed = advertiser_.record().sequence;
  ask(source, net::Method::TrackerRegister, net::encode_node_record(advertiser_.record()),
      [this, &source](const Expected<Bytes>& answer) {
        if (!answer.ok() && !is_refusal(answer.error())) return failed(source, answer.error());
        note_registration(source, answer);
        fetch_peers(source);
      });
}

// A tracker that is full, or that sees this node elsewhere than its record says, still names others.
void Bootstrap::note_registration(Source& source, const Expected<Bytes>& answer) {
  source.refusal = answer.ok() ? std::string() : answer.error().describe();
  if (answer.ok()) {
    source.refused_pause = Duration(0);
    return;
  }
  source.refused_pause = std::clamp(source.refused_pause * 2, least_refused, longest_refused);
  source.register_at = context_.services.clock.monotonic_now() + source.refused_pause;
  context_.services.logger.info("swarm", fmt::format("{}: {}", source.where(), source.success()));
}

void Bootstrap::fetch_peers(Source& source) {
  const net::Method method = source.tracker ? net::Method::TrackerPeers : net::Method::Peers;
  // A tracker has the record. Any other node needs it to call back. A record without endpoints is left out:
  // what the other node remembers of this one is better.
  const net::NodeRecord* own = source.tracker || !advertiser_.is_placed() ? nullptr : &advertiser_.record();
  if (!source.tracker) source.informed = advertiser_.record().sequence;
  if (own != nullptr) advertiser_.note_informed(source.channel->id());
  source.beating = true;
  ask(source, method, encode_peers_request(max_records, own), [this, &source](const Expected<Bytes>& answer) {
    source.beating = false;
    const auto records =
        answer.ok() ? decode_records(*answer) : Expected<std::vector<net::NodeRecord>>(answer.error());
    if (!records.ok()) return failed(source, records.error());
    source.pause = Duration(0);
    source.tries = 0;
    source.next_address = 0;
    source.busy = false;
    source.state = source.success();
    std::vector<net::Contact> contacts;
    if (source.channel->hello().offers(net::Feature::Dht))
      contacts.push_back({source.channel->id(), source.channel->endpoint()});
    take_peers(*records, {source.channel->id(), source.channel->endpoint()}, std::move(contacts));
    remember_good();
    reach_.update_relays();
    if (source.informed != advertiser_.record().sequence) return introduce(source);
    source.timer = later(context_.options.heartbeat, [this, &source] { beat(source); });
  });
}

void Bootstrap::beat(Source& source) {
  const bool refused = !source.refusal.empty();
  const bool again = refused && context_.services.clock.monotonic_now() >= source.register_at;
  if (again || source.informed != advertiser_.record().sequence) return introduce(source);
  const net::Method method = source.tracker && !refused ? net::Method::TrackerHeartbeat : net::Method::Ping;
  source.beating = true;
  ask(source, method, {}, [this, &source](const Expected<Bytes>& answer) {
    source.beating = false;
    if (answer.ok()) {
      if (source.informed != advertiser_.record().sequence) return introduce(source);
      // A node that knows few others asks more often.
      constexpr std::size_t few = 8;
      constexpr std::uint64_t now_and_then = 6;
      if (context_.book.size() < few || ++source.beats % now_and_then == 0) return fetch_peers(source);
      source.timer = later(context_.options.heartbeat, [this, &source] { beat(source); });
      return;
    }
    if (answer.error().code == ErrorCode::NotFound) return introduce(source);
    failed(source, answer.error());
  });
}

void Bootstrap::introduce_to_trackers() {
  for (const auto& source : sources_)
    if (source->tracker && source->is_free()) introduce(*source);
}

void Bootstrap::introduce_to_all() {
  for (const auto& source : sources_)
    if (source->is_free()) introduce(*source);
}

// ---- What is found.

void Bootstrap::join_table() {
  std::vector<net::Contact> contacts;
  for (const auto& source : sources_)
    if (source->channel && source->channel->hello().offers(net::Feature::Dht))
      contacts.push_back({source->channel->id(), source->channel->endpoint()});
  for (const net::NodeRecord* record : context_.book.all(context_.services.clock.wall_now())) {
    const auto contact = context_.paths.contact_of(*record, context_.options.one_lan);
    if (contact && context_.paths.way_to(contact->id, contact->endpoint) == Way::Direct)
      contacts.push_back(*contact);
  }
  join_by(contacts);
}

void Bootstrap::take_peers(const std::vector<net::NodeRecord>& records, const net::Caller& informant,
                           std::vector<net::Contact> contacts) {
  const WallTime now = context_.services.clock.wall_now();
  if (!table_.is_empty()) contacts.clear();
  for (const net::NodeRecord& record : records) {
    const bool known = context_.book.find(record.id(), now) != nullptr;
    if (record.id() == context_.id || !context_.book.put(record, now, informant).ok() ||
        (known && !table_.is_empty()))
      continue;
    for (const net::NodeEndpoint& at : record.endpoints)
      if (may_dial(at)) contacts.push_back({record.id(), at.endpoint});
  }
  join_by(contacts);
}

void Bootstrap::join_by(const std::vector<net::Contact>& contacts) {
  context_.paths.ask_for_turn_permissions();  // a record may name a new place at a TURN server
  advertiser_.introduce_itself();
  for (const auto& source : sources_)
    if (source->is_given() && source->channel && source->channel->hello().offers(net::Feature::Dht))
      table_.table().keep_given({source->channel->id(), source->channel->endpoint()});
  table_.join_by(contacts);
}

// ---- What is known.

bool Bootstrap::any_connected() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->channel != nullptr; });
}

bool Bootstrap::alone() const {
  return table_.is_empty() && context_.pool.connections() == 0 && !any_connected();
}

bool Bootstrap::seeks_others() const {
  const bool has_chosen = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source->channel != nullptr && !source->found;
  });
  return alone() || (!has_chosen && has_no_other_record(context_));
}

bool Bootstrap::knows_nobody() const {
  return has_no_other_record(context_) &&
         std::none_of(sources_.begin(), sources_.end(), [](const auto& source) {
           return source->busy || (source->channel != nullptr && !source->tracker);
         });
}

std::optional<net::Contact> Bootstrap::connected(const net::NodeId& id) const {
  for (const auto& source : sources_)
    if (source->channel && source->channel->id() == id) return net::Contact{id, source->channel->endpoint()};
  return std::nullopt;
}

std::vector<FirstConnection> Bootstrap::connections() const {
  std::vector<FirstConnection> found;
  for (const auto& source : sources_)
    if (source->channel) found.push_back({source->channel, source->tracker, source->busy});
  return found;
}

std::vector<SourceView> Bootstrap::view() const {
  std::vector<SourceView> found;
  for (const auto& source : sources_)
    found.push_back({source->dial.endpoint, source->peer.name, source->channel != nullptr, source->tracker,
                     source->state});
  return found;
}

}  // namespace neuroshard::swarm
