#include "core/sim/network.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/sim/sampled_key.h"

namespace neuroshard::sim {

Link link_between(Nat a, Nat b) {
  if (a == Nat::None || b == Nat::None) return Link::Direct;
  return a == Nat::Cone && b == Nat::Cone ? Link::Punched : Link::Relayed;
}

class Network::HostCaller final : public net::PeerCaller {
 public:
  HostCaller(Network& network, Host host) : network_(network), host_(host) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    network_.call(host_, peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  Network& network_;
  Host host_;
};

struct Network::Node {
  net::NodeId id;
  platform::Endpoint endpoint;
  Nat nat = Nat::None;
  Handler handler;
  std::unique_ptr<HostCaller> caller;
  Duration delay{};
  double bytes_per_second = 0;  // of its line; 0: as the others'
  int part = 0;
  bool online = true;
  std::uint64_t life = 0;  // counts restarts: answers to an earlier life are dropped
  std::unordered_map<Host, MonotonicTime> connected;
  MonotonicTime up_free{}, down_free{};   // when the last message has passed
  std::map<std::int64_t, Duration> busy;  // time that the line up is in use, by window
};

Network::Network(World& world, NetworkOptions options, std::uint64_t seed)
    : world_(world), options_(options), rng_(seed) {}
Network::~Network() = default;

Host Network::add(const net::NodeId& id, const platform::Endpoint& endpoint, Nat nat, Handler handler) {
  const auto host = static_cast<Host>(hosts_.size());
  NS_CHECK(by_id_.emplace(id, host).second);
  auto node = std::make_unique<Node>();
  node->id = id;
  node->endpoint = endpoint;
  node->nat = nat;
  node->handler = std::move(handler);
  node->caller = std::make_unique<HostCaller>(*this, host);
  const Duration span = options_.most_delay - options_.least_delay;
  const double share = rng_.uniform();  // squared: most lines are good, some are bad
  node->delay =
      options_.least_delay + Duration(static_cast<std::int64_t>(share * share * double(span.count())));
  hosts_.push_back(std::move(node));
  return host;
}

net::PeerCaller& Network::caller(Host host) {
  return *hosts_.at(host)->caller;
}

void Network::set_handler(Host host, Handler handler) {
  hosts_.at(host)->handler = std::move(handler);
}

void Network::set_online(Host host, bool online) {
  Node& node = *hosts_.at(host);
  if (node.online == online) return;
  node.online = online;
  ++node.life;
  node.connected.clear();
}

bool Network::online(Host host) const {
  return hosts_.at(host)->online;
}

MonotonicTime Network::sent_at(Host host) const {
  return std::max(hosts_.at(host)->up_free, world_.now());
}

void Network::set_part(Host host, int part) {
  hosts_.at(host)->part = part;
}

void Network::set_line(Host host, double bytes_per_second) {
  hosts_.at(host)->bytes_per_second = bytes_per_second;
}

Duration Network::passing(const Node& line, std::size_t bytes) const {
  const double speed = line.bytes_per_second > 0 ? line.bytes_per_second : options_.bytes_per_second;
  if (speed <= 0) return {};
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / speed));
}

Duration Network::one_way(const Node& a, const Node& b) const {
  const Duration direct = a.delay + b.delay;
  return link_between(a.nat, b.nat) == Link::Relayed ? 2 * direct : direct;
}

void Network::deliver(Node& from, Node& to, std::size_t bytes, Duration extra, std::function<void()> event) {
  const Duration way = one_way(from, to);
  const Duration up = passing(from, bytes), down = passing(to, bytes);
  // Lines without a speed have no queues: what comes a long way is nobody else's matter.
  if (up <= Duration::zero() && down <= Duration::zero()) return world_.after(way + extra, std::move(event));
  const MonotonicTime begins = std::max(from.up_free, world_.now());
  from.up_free = begins + up;
  if (options_.window > Duration::zero()) note_busy(from.busy, begins, from.up_free);
  if (bytes <= options_.passes_by) {
    to.down_free = std::max(to.down_free, world_.now()) + down;
    return world_.after(std::max(up, down) + way + extra, std::move(event));
  }
  // The receiver's line is taken when the message comes, not while a slow sender's queue holds it.
  world_.at(std::max(world_.now(), from.up_free + way - down),
            [this, &to, down, extra, event = std::move(event)]() mutable {
              to.down_free = std::max(to.down_free, world_.now()) + down;
              world_.at(to.down_free + extra, std::move(event));
            });
}

void Network::note_busy(std::map<std::int64_t, Duration>& busy, MonotonicTime begins,
                        MonotonicTime ends) const {
  for (MonotonicTime at = begins; at < ends;) {
    const std::int64_t window = at.time_since_epoch() / options_.window;
    const MonotonicTime until = std::min(ends, MonotonicTime((window + 1) * options_.window));
    busy[window] += until - at;
    at = until;
  }
}

double Network::busiest_window(Host host) const {
  Duration most{};
  for (const auto& [window, busy] : hosts_.at(host)->busy) most = std::max(most, busy);
  return to_seconds(most) * options_.bytes_per_second;
}

bool Network::lost(const Node& from, const Node& to) {
  if (from.online && to.online && from.part == to.part && rng_.uniform() >= options_.loss) return false;
  ++counters_.lost;
  return true;
}

std::shared_ptr<const Bytes> Network::under_way(Bytes message) {
  constexpr std::size_t large = 16u << 10, sweep = 4096;
  if (message.size() < large) return std::make_shared<const Bytes>(std::move(message));
  const std::size_t key = sampled_key(message);
  const auto [from, to] = large_.equal_range(key);
  for (auto at = from; at != to; ++at)
    if (auto held = at->second.lock(); held && *held == message) return held;
  if (large_.size() >= sweep) std::erase_if(large_, [](const auto& entry) { return entry.second.expired(); });
  auto held = std::make_shared<const Bytes>(std::move(message));
  large_.emplace(key, held);
  return held;
}

void Network::call(Host from, const net::Contact& to, net::Method method, Bytes request, Duration deadline,
                   net::CallDone done) {
  Node& caller = *hosts_[from];
  ++counters_.calls;
  counters_.bytes += request.size();
  const MonotonicTime end = world_.now() + deadline;
  // One outcome, whichever comes first; none for a caller that is gone.
  auto settle = [this, from, life = caller.life,
                 done = std::make_shared<net::CallDone>(std::move(done))](Expected<Bytes> answer) {
    if (*done == nullptr || hosts_[from]->life != life) return;
    std::exchange(*done, nullptr)(std::move(answer));
  };
  const auto found = by_id_.find(to.id);
  const bool there = found != by_id_.end() && hosts_[found->second]->endpoint == to.endpoint;
  if (!there || lost(caller, *hosts_[found->second])) {
    world_.at(end, [settle] { settle(make_error(ErrorCode::Timeout, "no answer within the deadline")); });
    return;
  }
  const Host callee = found->second;
  const Duration way = one_way(caller, *hosts_[callee]);
  Duration handshake{};
  const auto [connection, fresh] = caller.connected.try_emplace(callee, world_.now());
  if (fresh || world_.now() - connection->second > options_.idle) {
    ++counters_.handshakes;
    handshake = 2 * way * options_.handshake_round_trips;
  }
  connection->second = world_.now();
  world_.at(end, [settle] { settle(make_error(ErrorCode::Timeout, "no answer within the deadline")); });
  const std::size_t size = request.size();
  deliver(caller, *hosts_[callee], size, handshake,
          [this, from, callee, life = hosts_[callee]->life, method, request = under_way(std::move(request)),
           settle] {
            Node& host = *hosts_[callee];
            if (host.life != life || host.handler == nullptr) return;
            const net::Caller sender{hosts_[from]->id, hosts_[from]->endpoint};
            host.handler(sender, method, *request, [this, from, callee, settle](Expected<Bytes> answer) {
              if (lost(*hosts_[callee], *hosts_[from])) return;
              if (!answer.ok())
                return deliver(*hosts_[callee], *hosts_[from], 0, {},
                               [settle, error = answer.error()]() mutable { settle(error); });
              const std::size_t bytes = answer->size();
              counters_.bytes += bytes;
              deliver(*hosts_[callee], *hosts_[from], bytes, {},
                      [settle, held = under_way(*std::move(answer))]() mutable { settle(Bytes(*held)); });
            });
          });
}

}  // namespace neuroshard::sim
