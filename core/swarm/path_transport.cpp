#include "core/swarm/path_transport.h"

#include <algorithm>

namespace neuroshard::swarm {
namespace {

class CountedStream final : public net::PeerStream {
 public:
  CountedStream(std::shared_ptr<net::PeerStream> inner, std::shared_ptr<TrafficBook> traffic,
                const net::NodeId& peer)
      : inner_(std::move(inner)), traffic_(std::move(traffic)), peer_(peer) {}

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
  void break_off(Error reason) override { inner_->break_off(std::move(reason)); }

 private:
  const std::shared_ptr<net::PeerStream> inner_;
  const std::shared_ptr<TrafficBook> traffic_;
  const net::NodeId peer_;
};

class PathChannel final : public net::PeerChannel {
 public:
  PathChannel(std::shared_ptr<net::PeerChannel> inner, std::shared_ptr<TrafficBook> traffic,
              const platform::Endpoint& endpoint)
      : inner_(std::move(inner)), traffic_(std::move(traffic)), endpoint_(endpoint) {}

  const net::NodeId& id() const override { return inner_->id(); }
  const net::Hello& hello() const override { return inner_->hello(); }
  platform::Endpoint endpoint() const override { return endpoint_; }
  void call(net::Method method, Bytes request, Duration deadline, net::CallDone done) override {
    traffic_->count(id(), 0, request.size());
    inner_->call(method, std::move(request), deadline,
                 [traffic = traffic_, peer = id(), done = std::move(done)](Expected<Bytes> answer) {
                   if (answer.ok()) traffic->count(peer, answer->size(), 0);
                   done(std::move(answer));
                 });
  }
  std::shared_ptr<net::PeerStream> open(net::Method method, Duration patience) override {
    return std::make_shared<CountedStream>(inner_->open(method, patience), traffic_, id());
  }

 private:
  const std::shared_ptr<net::PeerChannel> inner_;
  const std::shared_ptr<TrafficBook> traffic_;
  const platform::Endpoint endpoint_;  // of a relayed one: the relay's
};

}  // namespace

std::string_view to_text(Way way) {
  return way == Way::Direct ? "direct" : "relayed";
}

void TrafficBook::count(const net::NodeId& peer, std::uint64_t in, std::uint64_t out) {
  sum_.in += in;
  sum_.out += out;
  if (peers_.size() >= max_peers && peers_.count(peer) == 0) return;
  Traffic& traffic = peers_[peer];
  traffic.in += in;
  traffic.out += out;
}

Traffic TrafficBook::of(const net::NodeId& peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? Traffic{} : found->second;
}

PathTransport::PathTransport(net::PeerTransport& inner, nat::Tunnels* tunnels, const net::NodeBook& book,
                             const Clock& clock)
    : inner_(inner), tunnels_(tunnels), book_(book), clock_(clock) {}

PathTransport::~PathTransport() {
  *alive_ = false;
}

Way PathTransport::way_to(const net::NodeId& id, const platform::Endpoint& at) const {
  const net::NodeRecord* record = book_.find(id, clock_.wall_now());
  if (record == nullptr) return Way::Direct;
  const net::NodeEndpoint relayed{net::Reach::Relayed, at};
  const bool is_relayed =
      std::find(record->endpoints.begin(), record->endpoints.end(), relayed) != record->endpoints.end();
  return is_relayed ? Way::Relayed : Way::Direct;
}

std::optional<net::Contact> PathTransport::contact_of(const net::NodeRecord& record, bool one_lan) const {
  for (const net::Reach reach : {net::Reach::Direct, net::Reach::Relayed}) {
    if (reach == net::Reach::Relayed && tunnels_ == nullptr) continue;
    for (const net::NodeEndpoint& at : record.endpoints)
      if (at.reach == reach && (one_lan || platform::globally_routable(at.endpoint.ip)))
        return net::Contact{record.id(), at.endpoint};
  }
  return std::nullopt;
}

void PathTransport::connect(const net::Dial& to, Duration deadline, Connected done) {
  const auto wrap = [traffic = traffic_, at = to.endpoint,
                     done = std::move(done)](Expected<std::shared_ptr<net::PeerChannel>> channel) {
    if (!channel.ok()) return done(std::move(channel).error());
    done(std::shared_ptr<net::PeerChannel>(std::make_shared<PathChannel>(std::move(*channel), traffic, at)));
  };
  if (tunnels_ == nullptr || !to.id || way_to(*to.id, to.endpoint) == Way::Direct)
    return inner_.connect(to, deadline, wrap);
  const MonotonicTime until = clock_.monotonic_now() + deadline;
  tunnels_->dial(to.endpoint, *to.id, deadline,
                 [this, alive = alive_, id = *to.id, until, wrap](const Expected<std::uint16_t>& port) {
                   if (!*alive) return;
                   if (!port.ok()) return wrap(port.error());
                   const Duration left = until - clock_.monotonic_now();
                   inner_.connect({{platform::IpAddress::v4(127, 0, 0, 1), *port}, id},
                                  std::max(left, net::least_deadline), wrap);
                 });
}

}  // namespace neuroshard::swarm
