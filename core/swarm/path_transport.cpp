#include "core/swarm/path_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/dht/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration first_pause = std::chrono::seconds(30);  // between two punches for one node
constexpr Duration turn_pause = std::chrono::seconds(5);    // about the time of a server's restart
constexpr Duration longest_pause = std::chrono::minutes(10);
constexpr Duration let_in_patience = std::chrono::seconds(6);  // the other node asks its server meanwhile
constexpr std::size_t endpoint_bytes = 18;
constexpr std::size_t most_asking = 4;

class CountedStream final : public net::PeerStream {
 public:
  CountedStream(std::shared_ptr<net::PeerStream> inner, std::shared_ptr<TrafficBook> traffic,
                const net::NodeId& peer, std::shared_ptr<void> use)
      : inner_(std::move(inner)), traffic_(std::move(traffic)), peer_(peer), use_(std::move(use)) {}

  void write(Bytes message, Written done) override {
    traffic_->count(peer_, 0, message.size());
    inner_->write(std::move(message), std::move(done));
  }
  void finish() override { inner_->finish(); }
  void read(Read done) override {
    inner_->read([traffic = traffic_, peer = peer_, done = std::move(done)](auto message) {
      if (message.ok() && message->has_value()) traffic->count(peer, (*message)->size(), 0);
      done(std::move(message));
    });
  }
  bool holds_read() const override { return inner_->holds_read(); }
  void break_off(Error reason) override { inner_->break_off(std::move(reason)); }

 private:
  const std::shared_ptr<net::PeerStream> inner_;
  const std::shared_ptr<TrafficBook> traffic_;
  const net::NodeId peer_;
  const std::shared_ptr<void> use_;  // of the connection
};

}  // namespace

class PathChannel final : public net::PeerChannel {
 public:
  PathChannel(std::shared_ptr<net::PeerChannel> inner, std::shared_ptr<TrafficBook> traffic,
              const platform::Endpoint& endpoint, const PathTransport::Path& path)
      : inner_(std::move(inner)), traffic_(std::move(traffic)), endpoint_(endpoint), path_(path) {}

  const net::NodeId& id() const override { return inner_->id(); }
  const net::Hello& hello() const override { return inner_->hello(); }
  platform::Endpoint endpoint() const override { return endpoint_; }
  void call(net::Method method, Bytes request, Duration deadline, net::CallDone done) override {
    traffic_->count(id(), 0, request.size());
    drop_unused();
    inner_->call(
        method, std::move(request), deadline,
        [traffic = traffic_, peer = id(), use = use_, done = std::move(done)](Expected<Bytes> answer) {
          if (answer.ok()) traffic->count(peer, answer->size(), 0);
          done(std::move(answer));
        });
  }
  std::shared_ptr<net::PeerStream> open(net::Method method, Duration patience) override {
    drop_unused();
    return std::make_shared<CountedStream>(inner_->open(method, patience), traffic_, id(), use_);
  }

  // Uses this connection, which leads to the same node, from now on. Running calls and streams end on the
  // one where they began.
  void switch_to(std::shared_ptr<net::PeerChannel> better, const PathTransport::Path& path) {
    formers_.push_back(
        {std::exchange(inner_, std::move(better)), std::exchange(use_, std::make_shared<char>())});
    path_ = path;
  }
  const std::shared_ptr<net::PeerChannel>& inner() const { return inner_; }
  const PathTransport::Path& path() const { return path_; }

 private:
  struct Former {
    std::shared_ptr<net::PeerChannel> channel;
    std::shared_ptr<void> use;
  };
  void drop_unused() {
    std::erase_if(formers_, [](const Former& former) { return former.use.use_count() == 1; });
  }

  std::shared_ptr<net::PeerChannel> inner_;
  std::shared_ptr<void> use_ = std::make_shared<char>();  // held by running calls and streams
  std::vector<Former> formers_;  // at most two: a path moves from a relay to TURN, and then to a punched one
  const std::shared_ptr<TrafficBook> traffic_;
  const platform::Endpoint endpoint_;  // that was dialled; of a relayed one: the relay's
  PathTransport::Path path_;           // now
};

std::string_view to_text(Way way) {
  switch (way) {
    case Way::Direct: return "direct";
    case Way::Punched: return "punched";
    case Way::Turn: return "turn";
    case Way::Relayed: return "relayed";
  }
  return "?";
}

void TrafficBook::count(const net::NodeId& peer, std::uint64_t in, std::uint64_t out) {
  sum_.in += in;
  sum_.out += out;
  if (peers_.size() >= max_peers && peers_.count(peer) == 0) {
    const auto bytes = [](const Traffic& one) { return one.in + one.out; };
    peers_.erase(std::min_element(peers_.begin(), peers_.end(), [&](const auto& a, const auto& b) {
      return bytes(a.second) < bytes(b.second);
    }));
  }
  Traffic& traffic = peers_[peer];
  traffic.in += in;
  traffic.out += out;
}

Traffic TrafficBook::of(const net::NodeId& peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? Traffic{} : found->second;
}

PathTransport::PathTransport(net::PeerTransport& inner, nat::Tunnels* tunnels, net::NodeBook& book,
                             const Clock& clock)
    : inner_(inner), tunnels_(tunnels), book_(book), clock_(clock) {}

PathTransport::~PathTransport() {
  lifetime_.end();
}

void PathTransport::set_gate(net::DialGate& gate, Executor& executor) {
  gate_ = &gate;
  refusals_ = std::make_shared<net::Mailbox>(executor);
}

bool PathTransport::may_dial(const platform::Endpoint& at, bool one_lan) const {
  return gate_ != nullptr ? gate_->check(at).ok() : one_lan || platform::globally_routable(at.ip);
}

Expected<bool> PathTransport::admit(const net::NodeId& id, const platform::Endpoint& at) {
  if (gate_ == nullptr || book_.is_proven(id, at)) return false;
  NS_RETURN_IF_ERROR(gate_->admit(at));
  return true;
}

void PathTransport::answered(const net::NodeId& id, const platform::Endpoint& at, bool counted) {
  if (counted) gate_->answered(at);
  book_.reached(id, at, clock_.wall_now());
}

Way PathTransport::way_to(const net::NodeId& id, const platform::Endpoint& at) const {
  const net::NodeRecord* record = book_.find(id, clock_.wall_now());
  if (record == nullptr) return Way::Direct;
  const auto names = [&](net::Reach reach) {
    const net::NodeEndpoint wanted{reach, at};
    return std::find(record->endpoints.begin(), record->endpoints.end(), wanted) != record->endpoints.end();
  };
  if (names(net::Reach::Turn)) return Way::Turn;
  return names(net::Reach::Relayed) ? Way::Relayed : Way::Direct;
}

std::optional<net::Contact> PathTransport::contact_of(const net::NodeRecord& record, bool one_lan) const {
  const net::NodeId id = record.id();
  for (const net::Reach reach : {net::Reach::Direct, net::Reach::Turn, net::Reach::Relayed}) {
    if (reach == net::Reach::Relayed && tunnels_ == nullptr) continue;
    const platform::Endpoint* found = nullptr;
    for (const net::NodeEndpoint& at : record.endpoints) {
      if (at.reach != reach || !may_dial(at.endpoint, one_lan)) continue;
      if (book_.is_proven(id, at.endpoint)) return net::Contact{id, at.endpoint};
      if (found == nullptr) found = &at.endpoint;
    }
    if (found != nullptr) return net::Contact{id, *found};
  }
  return std::nullopt;
}

std::optional<platform::Endpoint> PathTransport::endpoint_of(const net::NodeId& id, net::Reach reach) const {
  const net::NodeRecord* record = book_.find(id, clock_.wall_now());
  if (record == nullptr) return std::nullopt;
  for (const net::NodeEndpoint& at : record->endpoints)
    if (at.reach == reach && may_dial(at.endpoint, own_.one_lan)) return at.endpoint;
  return std::nullopt;
}

net::PeerTransport::Connected PathTransport::wrapping(const platform::Endpoint& dialled, const Path& path,
                                                      bool counted, Connected done) {
  return [this, life = lifetime_.token(), traffic = traffic_, dialled, path, counted,
          done = std::move(done)](Expected<std::shared_ptr<net::PeerChannel>> channel) {
    if (!channel.ok()) return done(std::move(channel).error());
    const auto wrapped = std::make_shared<PathChannel>(std::move(*channel), traffic, dialled, path);
    if (life.alive()) answered(wrapped->id(), path.at, counted);
    if (life.alive() && path.way != Way::Direct) keep_relayed(wrapped->id(), wrapped);
    done(std::shared_ptr<net::PeerChannel>(wrapped));
  };
}

void PathTransport::connect(const net::Dial& to, Duration deadline, Connected done) {
  connect_by_way(to, deadline, /*given=*/false, std::move(done));
}

void PathTransport::connect_given(const net::Dial& to, Duration deadline, Connected done) {
  if (gate_ != nullptr) gate_->name(to.endpoint);
  connect_by_way(to, deadline, /*given=*/true, std::move(done));
}

void PathTransport::connect_by_way(const net::Dial& to, Duration deadline, bool given, Connected done) {
  const Way way = to.id ? way_to(*to.id, to.endpoint) : Way::Direct;
  if (way == Way::Turn) return connect_to_turned(to, deadline, given, std::move(done));
  const bool relayed = way == Way::Relayed && tunnels_ != nullptr;
  attempt(to, {relayed ? Way::Relayed : Way::Direct, to.endpoint}, given, deadline, std::move(done));
}

void PathTransport::attempt(const net::Dial& to, const Path& path, bool given, Duration deadline,
                            Connected done) {
  const auto counted = given ? Expected<bool>(false) : admit(to.id.value_or(net::NodeId{}), path.at);
  if (!counted.ok()) {
    refusals_->put([done = std::move(done), error = counted.error()] { done(error); });
    return;
  }
  Connected then = wrapping(to.endpoint, path, *counted, std::move(done));
  if (path.way == Way::Relayed) return connect_through(path.at, *to.id, deadline, std::move(then));
  inner_.connect(to, deadline, std::move(then));
}

void PathTransport::connect_through(const platform::Endpoint& relay, const net::NodeId& id, Duration deadline,
                                    Connected done) {
  const MonotonicTime until = clock_.monotonic_now() + deadline;
  tunnels_->dial(relay, id, deadline,
                 [this, life = lifetime_.token(), id, until, done](const Expected<std::uint16_t>& port) {
                   if (!life.alive()) return;
                   if (!port.ok()) return done(port.error());
                   const Duration left = until - clock_.monotonic_now();
                   inner_.connect({{platform::IpAddress::v4(127, 0, 0, 1), *port}, id},
                                  std::max(left, net::least_deadline), done);
                 });
}

// A TURN server closes connections from addresses without permission. A node whose record names its address
// has one already; others come through the relay and ask for it (ask_for_turn_permissions).
void PathTransport::connect_to_turned(const net::Dial& to, Duration deadline, bool given, Connected done) {
  const auto relay = tunnels_ == nullptr ? std::nullopt : endpoint_of(*to.id, net::Reach::Relayed);
  const auto plainly = [this, to, given](Duration limit, Connected then) {
    attempt(to, {Way::Turn, to.endpoint}, given, limit, std::move(then));
  };
  if (!relay) return plainly(deadline, std::move(done));
  const auto relayed = [this, to, relay = *relay](Duration limit, Connected then) {
    attempt(to, {Way::Relayed, relay}, /*given=*/false, limit, std::move(then));
  };
  using Attempt = std::function<void(Duration, Connected)>;
  const Attempt first = own_.dialled ? Attempt(plainly) : Attempt(relayed);
  const Attempt second = own_.dialled ? Attempt(relayed) : Attempt(plainly);
  const MonotonicTime until = clock_.monotonic_now() + deadline;
  first(deadline / 2, [this, life = lifetime_.token(), second, until,
                       done = std::move(done)](Expected<std::shared_ptr<net::PeerChannel>> channel) {
    if (channel.ok() || !life.alive()) return done(std::move(channel));
    second(std::max(until - clock_.monotonic_now(), net::least_deadline), done);
  });
}

PathTransport::Path PathTransport::path_to(const net::NodeId& id, const platform::Endpoint& at) const {
  if (const auto found = relayed_.find(id); found != relayed_.end())
    if (const auto channel = found->second.channel.lock()) return channel->path();
  return {way_to(id, at), at};
}

void PathTransport::keep_relayed(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel) {
  if (relayed_.size() >= max_relayed && relayed_.count(id) == 0)
    std::erase_if(relayed_, [](const auto& entry) { return entry.second.channel.expired(); });
  if (relayed_.size() >= max_relayed && relayed_.count(id) == 0) return;  // stays relayed
  relayed_[id].channel = channel;
}

void PathTransport::punch_relayed() {
  const MonotonicTime now = clock_.monotonic_now();
  if (puncher_ == nullptr || !puncher_->punchable()) return;
  for (auto& [id, relayed] : relayed_) {
    if (!puncher_->has_room()) return;
    const auto channel = relayed.channel.lock();
    if (!channel || channel->path().way == Way::Punched || relayed.punch.under_way ||
        now < relayed.punch.not_before)
      continue;
    const net::NodeRecord* record = book_.find(id, clock_.wall_now());
    if (record == nullptr || (record->features & static_cast<std::uint64_t>(net::Feature::Punch)) == 0)
      continue;
    relayed.punch.under_way = true;
    punch(id, channel);
  }
}

void PathTransport::punch(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel) {
  puncher_->punch(
      channel->inner(), [this, life = lifetime_.token(), id,
                         kept = std::weak_ptr<PathChannel>(channel)](const Expected<Puncher::Punched>& hole) {
        if (!life.alive()) return;
        if (!hole.ok()) return tried(id, &Relayed::punch, false);
        inner_.connect({{platform::IpAddress::v4(127, 0, 0, 1), hole->port}, id}, net::connect_deadline,
                       [this, life, id, kept,
                        remote = hole->remote](Expected<std::shared_ptr<net::PeerChannel>> direct) {
                         if (!life.alive()) return;
                         const auto channel = kept.lock();
                         if (direct.ok() && channel)
                           channel->switch_to(std::move(*direct), {Way::Punched, remote});
                         tried(id, &Relayed::punch, direct.ok());
                       });
      });
}

void PathTransport::ask_for_turn_permissions() {
  if (!own_.seen_at) return;
  const MonotonicTime now = clock_.monotonic_now();
  std::size_t asking = 0;
  for (auto& [id, relayed] : relayed_) asking += relayed.turn.under_way ? 1 : 0;
  for (auto& [id, relayed] : relayed_) {
    if (asking >= most_asking) return;
    const auto channel = relayed.channel.lock();
    if (!channel || channel->path().way != Way::Relayed || relayed.turn.under_way ||
        now < relayed.turn.not_before)
      continue;
    const auto at = endpoint_of(id, net::Reach::Turn);
    if (!at) continue;
    relayed.turn.under_way = true;
    ++asking;
    ask_for_turn_permission(id, *at, channel);
  }
}

void PathTransport::ask_for_turn_permission(const net::NodeId& id, const platform::Endpoint& at,
                                            const std::shared_ptr<PathChannel>& channel) {
  channel->inner()->call(net::Method::LetIn, dht::encode_endpoint(*own_.seen_at),
                         net::call_deadline(let_in_patience, endpoint_bytes, 0),
                         [this, life = lifetime_.token(), id, at,
                          kept = std::weak_ptr<PathChannel>(channel)](const Expected<Bytes>& answer) {
                           if (!life.alive()) return;
                           if (!answer.ok()) return tried(id, &Relayed::turn, false);
                           switch_to_turn(id, at, kept);
                         });
}

void PathTransport::switch_to_turn(const net::NodeId& id, const platform::Endpoint& at,
                                   const std::weak_ptr<PathChannel>& channel) {
  const auto counted = admit(id, at);
  if (!counted.ok()) return tried(id, &Relayed::turn, false);
  inner_.connect({at, id}, net::connect_deadline,
                 [this, life = lifetime_.token(), id, at, channel,
                  counted = *counted](Expected<std::shared_ptr<net::PeerChannel>> there) {
                   if (!life.alive()) return;
                   if (there.ok()) answered(id, at, counted);
                   const auto kept = channel.lock();
                   // A punched path is better.
                   if (there.ok() && kept && kept->path().way == Way::Relayed)
                     kept->switch_to(std::move(*there), {Way::Turn, at});
                   tried(id, &Relayed::turn, there.ok());
                 });
}

// The next try is not at once, even after a success: a path that breaks soon is not worth another try.
void PathTransport::tried(const net::NodeId& id, Try Relayed::*what, bool well) {
  const auto found = relayed_.find(id);
  if (found == relayed_.end()) return;
  const Duration first = what == &Relayed::turn ? turn_pause : first_pause;
  (found->second.*what).ended(well, clock_.monotonic_now(), first);
}

void PathTransport::Try::ended(bool well, MonotonicTime now, Duration first) {
  under_way = false;
  pause = well ? first : std::clamp(pause * 2, first, longest_pause);
  not_before = now + pause;
}

}  // namespace neuroshard::swarm
