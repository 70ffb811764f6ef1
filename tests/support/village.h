// A village of members of a network on the simulated world. Header only; needs Qt Test.
#pragma once

#include <QtTest>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/net/limited_transport.h"
#include "core/sim/transport.h"
#include "core/swarm/member.h"
#include "tests/support/time.h"

namespace neuroshard::test {

using swarm::FirstPeer;
using swarm::Member;
using swarm::MemberOptions;
using swarm::MemberServices;
using swarm::NameResolver;

inline Hash256 network_id() {
  Hash256 id{};
  id.fill(7);
  return id;
}

// Names, as a server of names gives them that is away for the first few questions.
class Names final : public NameResolver {
 public:
  using Known = std::map<std::string, std::vector<platform::Endpoint>>;
  Names(Executor& executor, Known known, int away)
      : executor_(executor), known_(std::move(known)), away_(away) {}
  void look_up(const std::string& name, Found found) override {
    ++asked;
    Expected<std::vector<platform::Endpoint>> answer = make_error(ErrorCode::Unavailable, "no answer now");
    const auto entry = known_.find(name);
    if (asked > away_ && entry != known_.end()) answer = entry->second;
    QVERIFY(executor_.post([found = std::move(found), answer] { found(answer); }));
  }
  int asked = 0;

 private:
  Executor& executor_;
  Known known_;
  int away_;
};

struct Host {
  explicit Host(sim::World& world)
      : executor(world), bans(world.clock()), conduct(bans, world.clock(), false) {}
  ~Host() {
    if (transport) transport->serve(nullptr);
    member.reset();
    limited.reset();
    transport.reset();  // before the line that it tells of what it sends
  }
  sim::HostExecutor executor;
  net::BanList bans;
  net::Conduct conduct;
  net::RefusalCounts refusals;
  std::optional<crypto::KeyPair> key;
  platform::Endpoint endpoint;
  // In a village that measures its lines.
  std::unique_ptr<net::LineSpeed> line;
  std::unique_ptr<net::TrafficMeter> meter;
  std::unique_ptr<sim::SimTransport> transport;
  std::unique_ptr<net::LimitedTransport> limited;
  std::unique_ptr<Names> names;
  // Of a host that relays for others.
  std::unique_ptr<nat::RelayRole> relay;
  std::function<bool()> has_relay_data;
  std::unique_ptr<Member> member;
  net::NodeId id{};
};

// Stands before a tracker and gives other answers than it does.
class Front final : public net::PeerService {
 public:
  using Answer = std::function<void(net::Method, Expected<Bytes>, const net::Respond&)>;
  Front(Host& host, Answer answer) : inner_(*host.member), answer_(std::move(answer)) {
    host.transport->serve(this);
  }
  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    inner_.on_call(from, method, std::move(request), [this, method, respond](Expected<Bytes> answer) {
      answer_(method, std::move(answer), respond);
    });
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override {
    inner_.on_stream(from, method, std::move(stream));
  }

 private:
  net::PeerService& inner_;
  const Answer answer_;
};

// How one member differs from the others.
using Tune = std::function<void(Host&, MemberOptions&)>;

class Village {
 public:
  explicit Village(double loss = 0) : network_(world, options(loss, 0), 5) {}
  // One that measures its lines. line: bytes a second of each, in both directions; 0 = without limit. Its
  // hosts stand still before they go: nothing large is under way at the end.
  Village(double line, net::TrafficLimits limits) : network_(world, options(0, line), 5), limits_(limits) {}
  ~Village() {
    // However slow, away or lost they were: nobody of these is banned who is not meant to be.
    for (const Host& host : hosts)
      for (const net::Ban& ban : host.bans.all())
        if (meant_to_be_banned.count(ban.id) == 0) QTest::qFail(ban.reason.c_str(), __FILE__, __LINE__);
    hosts.clear();  // before what they stand on
  }

  Host& add(const std::vector<Host*>& sources, bool tracker = false, bool listens = true,
            const Tune& tune = {}) {
    hosts.emplace_back(world);
    Host& host = hosts.back();
    const auto number = static_cast<std::uint8_t>(hosts.size());
    Hash256 seed{};
    seed.fill(number);
    host.key.emplace(crypto::KeyPair::from_seed(seed));
    host.id = crypto::node_id(host.key->public_key());
    host.endpoint =
        place ? place(number) : platform::Endpoint{platform::IpAddress::v4(11, number, 0, 1), 9000};
    if (limits_) host.line = std::make_unique<net::LineSpeed>(world.clock(), limits_->up, limits_->down);
    host.transport = std::make_unique<sim::SimTransport>(
        sim::TransportServices{world, network_, population_, host.bans, host.refusals, host.line.get()},
        host.executor, host.id, host.endpoint, sim::Nat::None, net::Hello{});
    if (limits_) {
      host.meter = std::make_unique<net::TrafficMeter>(world.clock(), logger_, *limits_, nullptr);
      host.limited = std::make_unique<net::LimitedTransport>(*host.transport, host.executor, *host.meter,
                                                             host.line.get());
    }
    MemberOptions member = listening();
    member.port = host.endpoint.port;
    if (!listens) member.port = 0;
    member.tracker = tracker;
    for (const Host* source : sources) member.sources.push_back({source->endpoint, source->id});
    if (tune) tune(host, member);
    start(host, std::move(member), number);
    return host;
  }
  // The program ended and is started again, with another seed.
  void restart(Host& host, MemberOptions member, std::uint64_t seed) {
    host.transport->serve(nullptr);
    host.member.reset();
    start(host, std::move(member), seed);
  }
  static MemberOptions listening() {
    MemberOptions member;
    member.network_id = network_id();
    member.program = "test";
    member.port = 9000;
    return member;
  }
  void power_off(Host& host) { network_.set_online(host.transport->host(), false); }
  void power_on(Host& host) { network_.set_online(host.transport->host(), true); }
  bool run_until(const std::function<bool()>& condition, Duration limit) {
    return world.run_until(condition, world.now() + limit);
  }

  sim::World world;
  std::deque<Host> hosts;
  std::set<net::NodeId> meant_to_be_banned;
  // Where the host of this number is; none: each in an address group of its own.
  std::function<platform::Endpoint(std::uint8_t number)> place;

 private:
  void start(Host& host, MemberOptions member, std::uint64_t seed) {
    net::PeerTransport* transport = host.transport.get();
    if (host.limited) transport = host.limited.get();
    host.member = std::make_unique<Member>(
        MemberServices{*host.key, *transport, host.executor, world.clock(), logger_, host.names.get(),
                       nullptr, nullptr, host.relay.get(), &host.conduct, host.line.get(), nullptr, nullptr,
                       host.has_relay_data},
        std::move(member), seed);
    host.transport->serve(host.limited ? &host.limited->serving(host.member.get()) : host.member.get());
    host.member->start();
  }
  static sim::NetworkOptions options(double loss, double line) {
    sim::NetworkOptions o;
    o.loss = loss;
    o.bytes_per_second = line;
    return o;
  }
  NullLogger logger_;
  sim::Network network_;
  sim::Population population_;
  std::optional<net::TrafficLimits> limits_;
};

}  // namespace neuroshard::test
