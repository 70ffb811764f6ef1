// First peers and trackers of a member: dialled, told who this node is, asked for others, and tried again for
// ever when they fail; those of the cache take turns.
#include <fmt/format.h>

#include <algorithm>

#include "core/dht/messages.h"
#include "core/swarm/detail/member_source.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr std::size_t answer_bytes = 100u << 10;  // of a list of records
constexpr std::size_t cached_at_a_time = 4;

}  // namespace

// The cache is a file that others may have touched: a record counts when its own node has signed it.
void Member::add_cached() {
  const WallTime now = services_.clock.wall_now();
  for (const CachedPeer& peer : options_.cached) {
    const net::NodeId id = peer.record.id();
    if (id == id_ || !net::check_node_record(peer.record, options_.network_id, peer.record.made).ok())
      continue;
    const auto at = std::find_if(peer.record.endpoints.begin(), peer.record.endpoints.end(),
                                 [&](const net::NodeEndpoint& e) {
                                   return e.reach == net::Reach::Direct &&
                                          (options_.one_lan || platform::globally_routable(e.endpoint.ip));
                                 });
    if (at == peer.record.endpoints.end()) continue;
    good_.heard(peer.record, std::min(peer.heard, now));
    spares_.push_back({at->endpoint, id});
  }
  for (; sources_.size() < cached_at_a_time && !spares_.empty(); spares_.pop_front()) {
    sources_.push_back(std::make_unique<Source>());
    Source& source = *sources_.back();
    source.cached = true;
    source.peer = spares_.front();
    source.dial = {source.peer.endpoint, source.peer.id};
  }
  untried_ = spares_.size();
}

// Another one of the cache takes the place of one that failed; at first without growing pauses, until all had
// their turn.
void Member::next_cached(Source& source) {
  if (spares_.empty()) return;
  spares_.push_back(source.peer);
  source.peer = spares_.front();
  spares_.pop_front();
  source.dial = {source.peer.endpoint, source.peer.id};
  if (untried_ == 0) return;
  --untried_;
  source.pause = Duration(0);
}

void Member::remember_good() {
  const WallTime now = services_.clock.wall_now();
  const auto heard = [&](const net::NodeId& id) {
    const net::NodeRecord* record = book_.find(id, now);
    if (record != nullptr && !record->endpoints.empty()) good_.heard(*record, now);
  };
  for (const net::PeerView& peer : pool_.peers())
    if (peer.connected && peer.round_trip) heard(peer.id);
  for (const auto& source : sources_)
    if (source->channel && !source->tracker && !source->busy) heard(source->channel->id());
}

void Member::try_source(Source& source) {
  source.busy = true;
  if (source.peer.name.empty()) return dial(source);
  source.state = "looking the name up";
  services_.names->look_up(source.peer.name, [this, alive = alive_, &source](
                                                 const Expected<std::vector<platform::Endpoint>>& found) {
    if (!*alive) return;
    if (!found.ok()) return failed(source, found.error());
    if (found->empty()) return failed(source, make_error(ErrorCode::NotFound, "the name has no address"));
    // One address after the other, when the first does not answer.
    source.dial = {(*found)[source.tries++ % found->size()], source.peer.id};
    dial(source);
  });
}

void Member::dial(Source& source) {
  source.state = "connecting";
  paths_.connect(
      source.dial, net::connect_deadline,
      [this, alive = alive_, &source](Expected<std::shared_ptr<net::PeerChannel>> channel) {
        if (!*alive) return;
        if (!channel.ok()) return failed(source, channel.error());
        if (source.found && (*channel)->id() == id_)
          return failed(source, make_error(ErrorCode::Denied, "this node itself"));
        source.channel = std::move(*channel);
        source.tracker = source.channel->hello().offers(net::Feature::Tracker);
        services_.logger.info(
            "swarm", fmt::format("connected to {} {}", source.tracker ? "tracker" : "peer", source.where()));
        learn_address(source);
      });
}

void Member::failed(Source& source, const Error& error) {
  source.channel.reset();
  source.busy = false;
  const std::string where = source.where();
  if (source.found && give_up(source, error)) return;
  if (source.cached) next_cached(source);
  source.pause = std::clamp(source.pause * 2, options_.first_pause, options_.longest_pause);
  const Duration wait =
      source.pause / 2 +
      Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(source.pause.count()))));
  source.state = fmt::format("{}; tried again in {:.0f} s", error.describe(), to_seconds(wait));
  services_.logger.info("swarm", fmt::format("{}: {}", where, source.state));
  source.timer = later(wait, [this, &source] { try_source(source); });
}

void Member::ask(Source& source, net::Method method, Bytes request, Duration allowed, Done done) {
  const std::size_t size = request.size();
  source.channel->call(method, std::move(request), net::call_deadline(allowed, size, answer_bytes),
                       [alive = alive_, done = std::move(done)](Expected<Bytes> answer) {
                         if (*alive) done(std::move(answer));
                       });
}

void Member::learn_address(Source& source) {
  source.state = "asks for the own address";
  ask(source, net::Method::AddressEcho, {}, call_patience, [this, &source](const Expected<Bytes>& answer) {
    if (!answer.ok()) return failed(source, answer.error());
    const auto endpoint = dht::decode_endpoint(*answer);
    if (!endpoint.ok()) return failed(source, endpoint.error());
    reach_.seen(*endpoint);
    if (!reach_.due()) return introduce(source);
    source.state = "asks to be dialled back";
    reach_.verify(dial_back_by(source), [this, alive = alive_, &source] {
      if (!*alive) return;
      if (!reach_.advertised())
        services_.logger.info("swarm", "not reached from outside: " + reach_.why_not());
      introduce(source);
    });
  });
}

void Member::introduce(Source& source) {
  source.busy = true;
  source.timer.reset();
  if (!source.tracker) return fetch_peers(source);
  source.state = "registers";
  source.told = record_.sequence;
  ask(source, net::Method::TrackerRegister, net::encode_node_record(record_), call_patience,
      [this, &source](const Expected<Bytes>& answer) {
        if (!answer.ok()) return failed(source, answer.error());
        fetch_peers(source);
      });
}

void Member::fetch_peers(Source& source) {
  const net::Method method = source.tracker ? net::Method::TrackerPeers : net::Method::Peers;
  // A tracker has had the record; any other node would never learn whom it could call back. What it knows of
  // a node that has just been started again is better than a record without a place.
  const net::NodeRecord* own = source.tracker || !placed() ? nullptr : &record_;
  if (!source.tracker) source.told = record_.sequence;
  if (own != nullptr) told_.insert(source.channel->id());
  ask(source, method, encode_peers_request(max_records, own), call_patience,
      [this, &source](const Expected<Bytes>& answer) {
        const auto records =
            answer.ok() ? decode_records(*answer) : Expected<std::vector<net::NodeRecord>>(answer.error());
        if (!records.ok()) return failed(source, records.error());
        source.pause = Duration(0);
        source.busy = false;
        source.state = source.tracker ? "registered" : "connected";
        std::vector<net::Contact> contacts;
        if (source.channel->hello().offers(net::Feature::Dht))
          contacts.push_back({source.channel->id(), source.channel->endpoint()});
        take_peers(*records, std::move(contacts));
        remember_good();
        find_relays();
        if (source.told != record_.sequence) return introduce(source);  // the record has changed meanwhile
        source.timer = later(options_.heartbeat, [this, &source] { beat(source); });
      });
}

void Member::beat(Source& source) {
  if (source.told != record_.sequence) return introduce(source);
  const net::Method method = source.tracker ? net::Method::TrackerHeartbeat : net::Method::Ping;
  ask(source, method, {}, call_patience, [this, &source](const Expected<Bytes>& answer) {
    if (answer.ok()) {
      // Whom it knows changes; who knows few asks more often.
      constexpr std::size_t few = 8;
      constexpr std::uint64_t now_and_then = 6;
      if (book_.size() < few || ++source.beats % now_and_then == 0) return fetch_peers(source);
      source.timer = later(options_.heartbeat, [this, &source] { beat(source); });
      return;
    }
    if (answer.error().code == ErrorCode::NotFound) return introduce(source);
    failed(source, answer.error());
  });
}

}  // namespace neuroshard::swarm
