#include "core/net/peer_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace neuroshard::net {
namespace {

// The stream ends before its connection.
struct HeldStream {
  std::shared_ptr<PeerChannel> channel;
  std::shared_ptr<PeerStream> stream;
};

}  // namespace

struct PeerPool::Peer {
  Contact contact;
  std::shared_ptr<PeerChannel> channel;
  bool dialling = false;
  std::vector<Waiting> waiting;
  std::size_t in_flight = 0;
  std::vector<std::weak_ptr<PeerStream>> streams;
  MonotonicTime used{};
  MonotonicTime not_before{};  // of the next dial
  Duration pause{0};
  std::optional<Error> error;
  std::optional<Duration> round_trip;
  std::uint64_t calls = 0, failures = 0;

  bool has_streams() const {
    return std::any_of(streams.begin(), streams.end(), [](const auto& weak) { return !weak.expired(); });
  }
  bool idle() const { return !dialling && in_flight == 0 && !has_streams(); }
};

PeerPool::PeerPool(PeerTransport& transport, Executor& executor, const Clock& clock, PoolLimits limits,
                   const BanList* bans)
    : transport_(transport),
      executor_(executor),
      clock_(clock),
      limits_(limits),
      bans_(bans),
      results_(std::make_shared<Mailbox>(executor)) {
  timer_ = executor_.post_after(limits_.idle / 4, [this] { tidy(); });
}

PeerPool::~PeerPool() {
  lifetime_.end();
  results_->close();
}

std::shared_ptr<PeerPool::Peer> PeerPool::find_or_make(const Contact& contact) {
  const auto found = peers_.find(contact.id);
  if (found != peers_.end()) {
    Peer& peer = *found->second;
    // A new address is used once the known one is not reached.
    if (peer.contact.endpoint != contact.endpoint && !peer.channel && !peer.dialling) {
      peer.contact = contact;
      peer.pause = Duration(0);
      peer.not_before = {};
    }
    return found->second;
  }
  if (peers_.size() >= limits_.peers && !make_room()) return nullptr;
  const auto peer = std::make_shared<Peer>();
  peer->contact = contact;
  peer->used = clock_.monotonic_now();
  peers_[contact.id] = peer;
  return peer;
}

// Others can make up any number of contacts: these must not end connections.
bool PeerPool::make_room() {
  const auto rank = [](const Peer& peer) { return std::make_pair(peer.channel != nullptr, peer.used); };
  auto oldest = peers_.end();
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    if (!at->second->idle()) continue;
    if (oldest == peers_.end() || rank(*at->second) < rank(*oldest->second)) oldest = at;
  }
  if (oldest == peers_.end()) return false;
  peers_.erase(oldest);
  return true;
}

std::optional<Error> PeerPool::ban_of(const NodeId& id) const {
  const auto reason = bans_ == nullptr ? std::nullopt : bans_->reason(id);
  if (!reason) return std::nullopt;
  return make_error(ErrorCode::Denied, "the peer is banned: " + *reason);
}

std::optional<Error> PeerPool::refused(const NodeId& id) {
  std::optional<Error> ban = ban_of(id);
  const auto found = ban ? peers_.find(id) : peers_.end();
  if (found == peers_.end()) return ban;
  for (const auto& weak : std::exchange(found->second->streams, {}))
    if (const auto stream = weak.lock()) stream->break_off(*ban);
  found->second->channel.reset();
  return ban;
}

void PeerPool::connect(const Contact& contact, PeerTransport::Connected done) {
  const auto fail = [&](Error error) { results_->put([done, error = std::move(error)] { done(error); }); };
  if (auto error = refused(contact.id)) return fail(std::move(*error));
  const auto peer = find_or_make(contact);
  if (peer == nullptr)
    return fail(make_error(ErrorCode::Exhausted, "too many peers are connected; try again"));
  peer->used = clock_.monotonic_now();
  if (peer->channel) return results_->put([done, channel = peer->channel] { done(channel); });
  if (peer->waiting.size() >= limits_.waiting_per_peer)
    return fail(make_error(ErrorCode::Exhausted, "too many calls wait for a connection to this peer"));
  if (!peer->dialling && clock_.monotonic_now() < peer->not_before) return fail(*peer->error);
  peer->waiting.push_back({contact.endpoint, clock_.monotonic_now(), std::move(done)});
  if (!peer->dialling) dial(peer);
}

void PeerPool::dial(const std::shared_ptr<Peer>& peer) {
  peer->dialling = true;
  transport_.connect({peer->contact.endpoint, peer->contact.id}, limits_.connect,
                     [this, life = lifetime_.token(), peer](Expected<std::shared_ptr<PeerChannel>> result) {
                       if (life.alive()) connected(peer, std::move(result));
                     });
}

void PeerPool::connected(const std::shared_ptr<Peer>& peer, Expected<std::shared_ptr<PeerChannel>> result) {
  peer->dialling = false;
  std::vector<Waiting> waiting = std::exchange(peer->waiting, {});
  if (result.ok()) {
    peer->channel = *result;
    peer->error.reset();
    peer->pause = Duration(0);
  } else {
    peer->error = result.error();
    ++peer->failures;
    peer->pause = std::clamp(peer->pause * 2, limits_.first_pause, limits_.longest_pause);
    peer->not_before = clock_.monotonic_now() + peer->pause;
    dial_another(peer, waiting);
  }
  for (const Waiting& one : waiting) one.done(result);
}

// A false address that others name for a peer must not fail the calls that have the right one, nor may many
// hold them up: the next call with another address than the last one's is dialled at once.
void PeerPool::dial_another(const std::shared_ptr<Peer>& peer, std::vector<Waiting>& failed) {
  const MonotonicTime oldest = clock_.monotonic_now() - 2 * limits_.connect;
  const auto others = std::stable_partition(failed.begin(), failed.end(), [&](const Waiting& one) {
    return one.at == peer->contact.endpoint || one.since <= oldest;
  });
  if (others == failed.end()) return;
  peer->waiting.assign(std::make_move_iterator(others), std::make_move_iterator(failed.end()));
  failed.erase(others, failed.end());
  peer->contact.endpoint = peer->waiting.front().at;
  peer->pause = Duration(0);
  peer->not_before = {};
  dial(peer);
}

void PeerPool::call(const Contact& contact, Method method, Bytes request, Duration deadline, CallDone done) {
  connect(contact, [this, contact, method, request = std::move(request), deadline,
                    done = std::move(done)](const Expected<std::shared_ptr<PeerChannel>>& channel) mutable {
    if (!channel.ok()) return done(channel.error());
    const auto found = peers_.find(contact.id);
    if (found == peers_.end() || found->second->in_flight >= limits_.calls_per_peer)
      return done(make_error(ErrorCode::Exhausted, "too many calls to this peer are open"));
    start(found->second, *channel, method, std::move(request), deadline, std::move(done));
  });
}

void PeerPool::open(const Contact& contact, Method method, Duration patience, Opened done) {
  connect(contact, [this, id = contact.id, method, patience,
                    done = std::move(done)](const Expected<std::shared_ptr<PeerChannel>>& channel) {
    if (!channel.ok()) return done(channel.error());
    const auto found = peers_.find(id);
    if (found == peers_.end())
      return done(make_error(ErrorCode::Exhausted, "too many peers are connected; try again"));
    const auto held = std::make_shared<HeldStream>(HeldStream{*channel, (*channel)->open(method, patience)});
    const std::shared_ptr<PeerStream> stream(held, held->stream.get());
    auto& streams = found->second->streams;
    std::erase_if(streams, [](const auto& weak) { return weak.expired(); });
    streams.push_back(stream);
    done(stream);
  });
}

// Uses the channel that connect() found: the peer's entry may be gone by now.
void PeerPool::start(const std::shared_ptr<Peer>& peer, const std::shared_ptr<PeerChannel>& channel,
                     Method method, Bytes request, Duration deadline, CallDone done) {
  constexpr std::size_t small = 4096;
  const bool small_request = request.size() <= small;
  const MonotonicTime began = clock_.monotonic_now();
  ++peer->in_flight;
  ++peer->calls;
  channel->call(method, std::move(request), deadline,
                [this, life = lifetime_.token(), peer, channel, began, small_request,
                 done = std::move(done)](Expected<Bytes> answer) {
                  if (!life.alive()) return;
                  --peer->in_flight;
                  const MonotonicTime now = clock_.monotonic_now();
                  peer->used = now;
                  const bool broken = !answer.ok() && (answer.error().code == ErrorCode::Unavailable ||
                                                       answer.error().code == ErrorCode::Timeout);
                  if (broken) {
                    ++peer->failures;
                    // The next call replaces a connection that does not answer.
                    if (peer->channel == channel) peer->channel.reset();
                  } else if (small_request && answer.ok() && answer->size() <= small) {
                    const Duration sample = now - began;
                    peer->round_trip = peer->round_trip ? (*peer->round_trip * 7 + sample) / 8 : sample;
                  }
                  done(std::move(answer));
                });
}

std::optional<platform::Endpoint> PeerPool::connected_at(const NodeId& id) const {
  const auto found = peers_.find(id);
  if (found == peers_.end() || !found->second->channel) return std::nullopt;
  return found->second->contact.endpoint;
}

CallPath PeerPool::path_to(const Contact& peer) const {
  const auto at = connected_at(peer.id);
  if (!at) return CallPath::None;
  return *at == peer.endpoint ? CallPath::There : CallPath::Elsewhere;
}

void PeerPool::tidy() {
  const MonotonicTime now = clock_.monotonic_now();
  for (auto& [id, peer] : peers_)
    if (!refused(id) && peer->idle() && now - peer->used >= limits_.idle && peer->channel.use_count() == 1)
      peer->channel.reset();
  std::erase_if(peers_, [&](const auto& entry) {
    const Peer& peer = *entry.second;
    return peer.idle() && !peer.channel && now - peer.used >= limits_.longest_pause;
  });
  timer_ = executor_.post_after(limits_.idle / 4, [this] { tidy(); });
}

std::vector<PeerView> PeerPool::peers() const {
  std::vector<PeerView> views;
  for (const auto& [id, peer] : peers_) {
    PeerView view;
    view.id = id;
    view.endpoint = peer->contact.endpoint;
    view.connected = peer->channel != nullptr;
    const std::optional<Error> ban = ban_of(id);
    view.error = ban ? ban : peer->error;
    view.round_trip = peer->round_trip;
    view.calls = peer->calls;
    view.failures = peer->failures;
    if (peer->channel) {
      view.program = peer->channel->hello().program;
      view.version = peer->channel->hello().version;
      view.features = peer->channel->hello().features;
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::size_t PeerPool::connections() const {
  return static_cast<std::size_t>(std::count_if(
      peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second->channel != nullptr; }));
}

}  // namespace neuroshard::net
