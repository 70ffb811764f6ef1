#include "core/swarm/path_transport.h"

#include <algorithm>
#include <utility>

namespace neuroshard::swarm {
namespace {

constexpr Duration first_pause = std::chrono::seconds(30);  // between two punches for one node
constexpr Duration longest_pause = std::chrono::minutes(10);

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
              const platform::Endpoint& endpoint)
      : inner_(std::move(inner)), traffic_(std::move(traffic)), endpoint_(endpoint) {}

  const net::NodeId& id() const override { return inner_->id(); }
  const net::Hello& hello() const override { return inner_->hello(); }
  platform::Endpoint endpoint() const override { return endpoint_; }
  void call(net::Method method, Bytes request, Duration deadline, net::CallDone done) override {
    traffic_->count(id(), 0, request.size());
    drop_former();
    inner_->call(
        method, std::move(request), deadline,
        [traffic = traffic_, peer = id(), use = use_, done = std::move(done)](Expected<Bytes> answer) {
          if (answer.ok()) traffic->count(peer, answer->size(), 0);
          done(std::move(answer));
        });
  }
  std::shared_ptr<net::PeerStream> open(net::Method method, Duration patience) override {
    drop_former();
    return std::make_shared<CountedStream>(inner_->open(method, patience), traffic_, id(), use_);
  }

  // From now on over this connection, which leads to the same node. What is under way ends on the former.
  void go_on_over(std::shared_ptr<net::PeerChannel> direct, const platform::Endpoint& remote) {
    former_ = std::exchange(inner_, std::move(direct));
    former_use_ = std::exchange(use_, std::make_shared<char>());
    punched_ = remote;
  }
  const std::shared_ptr<net::PeerChannel>& inner() const { return inner_; }
  const std::optional<platform::Endpoint>& punched() const { return punched_; }

 private:
  void drop_former() {
    if (former_ && former_use_.use_count() == 1) former_.reset();
  }

  std::shared_ptr<net::PeerChannel> inner_, former_;
  std::shared_ptr<void> use_ = std::make_shared<char>(), former_use_;  // held by all that is under way
  const std::shared_ptr<TrafficBook> traffic_;
  const platform::Endpoint endpoint_;  // of a relayed one: the relay's
  std::optional<platform::Endpoint> punched_;
};

std::string_view to_text(Way way) {
  switch (way) {
    case Way::Direct: return "direct";
    case Way::Punched: return "punched";
    case Way::Relayed: return "relayed";
  }
  return "?";
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
  const bool relayed = tunnels_ != nullptr && to.id && way_to(*to.id, to.endpoint) == Way::Relayed;
  const auto wrap = [this, alive = alive_, traffic = traffic_, at = to.endpoint, relayed,
                     done = std::move(done)](Expected<std::shared_ptr<net::PeerChannel>> channel) {
    if (!channel.ok()) return done(std::move(channel).error());
    const auto wrapped = std::make_shared<PathChannel>(std::move(*channel), traffic, at);
    if (*alive && relayed) keep_relayed(wrapped->id(), wrapped);
    done(std::shared_ptr<net::PeerChannel>(wrapped));
  };
  if (!relayed) return inner_.connect(to, deadline, wrap);
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

PathTransport::Path PathTransport::path_to(const net::NodeId& id, const platform::Endpoint& at) const {
  if (const auto found = relayed_.find(id); found != relayed_.end())
    if (const auto channel = found->second.channel.lock(); channel && channel->punched())
      return {Way::Punched, *channel->punched()};
  return {way_to(id, at), at};
}

void PathTransport::keep_relayed(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel) {
  if (relayed_.size() >= max_relayed && relayed_.count(id) == 0)
    std::erase_if(relayed_, [](const auto& entry) { return entry.second.channel.expired(); });
  if (relayed_.size() >= max_relayed && relayed_.count(id) == 0) return;  // stays relayed
  relayed_[id].channel = channel;
}

void PathTransport::punch_what_can_be() {
  const MonotonicTime now = clock_.monotonic_now();
  if (puncher_ == nullptr || !puncher_->punchable()) return;
  for (auto& [id, relayed] : relayed_) {
    if (!puncher_->has_room()) return;
    const auto channel = relayed.channel.lock();
    if (!channel || channel->punched() || relayed.punching || now < relayed.not_before) continue;
    const net::NodeRecord* record = book_.find(id, clock_.wall_now());
    if (record == nullptr || (record->features & static_cast<std::uint64_t>(net::Feature::Punch)) == 0)
      continue;
    relayed.punching = true;
    punch(id, channel);
  }
}

void PathTransport::punch(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel) {
  puncher_->punch(channel->inner(), [this, alive = alive_, id, kept = std::weak_ptr<PathChannel>(channel)](
                                        const Expected<Puncher::Punched>& hole) {
    if (!*alive) return;
    if (!hole.ok()) return punched(id, &hole.error());
    inner_.connect(
        {{platform::IpAddress::v4(127, 0, 0, 1), hole->port}, id}, net::connect_deadline,
        [this, alive, id, kept, remote = hole->remote](Expected<std::shared_ptr<net::PeerChannel>> direct) {
          if (!*alive) return;
          if (!direct.ok()) return punched(id, &direct.error());
          if (const auto channel = kept.lock()) channel->go_on_over(std::move(*direct), remote);
          punched(id, nullptr);
        });
  });
}

// The next one not at once, also after a success: what breaks soon is not worth another.
void PathTransport::punched(const net::NodeId& id, const Error* failure) {
  const auto found = relayed_.find(id);
  if (found == relayed_.end()) return;
  Relayed& relayed = found->second;
  relayed.punching = false;
  relayed.pause =
      failure == nullptr ? first_pause : std::clamp(relayed.pause * 2, first_pause, longest_pause);
  relayed.not_before = clock_.monotonic_now() + relayed.pause;
}

}  // namespace neuroshard::swarm
