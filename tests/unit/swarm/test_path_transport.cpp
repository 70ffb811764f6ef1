// How a member dials: plainly, through a relay, and from relayed to punched; on the loopback interface with a
// real relay and real tunnels, and connections to peers that a test answers for.
#include <QtTest>
#include <future>

#include "core/dht/messages.h"
#include "core/swarm/path_transport.h"
#include "tests/support/keys.h"
#include "tests/support/loopback_relay.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using nat::TunnelOptions;
using nat::Tunnels;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpListener;

namespace {

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
constexpr Duration generous = std::chrono::seconds(20);

SystemClock the_clock;
crypto::SystemEntropy the_entropy;
const nat::Io io{the_clock, the_entropy, {}};

Hash256 network_id() {
  Hash256 id{};
  id.fill(7);
  return id;
}

using neuroshard::test::key_of;

// Connections that stand at once and do as the test says; each knows where it was dialled.
class Wire final : public net::PeerTransport {
 public:
  using Called = std::function<void(net::Method, Bytes, net::CallDone)>;
  explicit Wire(Executor& executor) : executor_(executor) {}
  void connect(const net::Dial& to, Duration, Connected done) override {
    dialled.push_back(to);
    const bool posted = executor_.post([this, to, done] {
      if (closed && to.endpoint == *closed)
        return done(make_error(ErrorCode::Unavailable, "the peer closed the connection"));
      done(std::shared_ptr<net::PeerChannel>(std::make_shared<Channel>(*this, to)));
    });
    if (!posted) qFatal("the executor is full");
  }
  void set_hello(net::Hello hello) override { hello_ = std::move(hello); }
  const net::Hello& hello() const override { return hello_; }

  std::vector<net::Dial> dialled;
  std::optional<Endpoint> closed;  // lets nobody in
  std::size_t open = 0;
  std::function<void(const Endpoint& over, net::Method, Bytes, net::CallDone)> called;

 private:
  class Channel final : public net::PeerChannel {
   public:
    Channel(Wire& wire, const net::Dial& to) : wire_(wire), to_(to) { ++wire_.open; }
    ~Channel() override { --wire_.open; }
    const net::NodeId& id() const override { return *to_.id; }
    const net::Hello& hello() const override { return wire_.hello_; }
    Endpoint endpoint() const override { return to_.endpoint; }
    void call(net::Method method, Bytes request, Duration, net::CallDone done) override {
      wire_.called(to_.endpoint, method, std::move(request), std::move(done));
    }
    std::shared_ptr<net::PeerStream> open(net::Method, Duration) override { return nullptr; }

   private:
    Wire& wire_;
    const net::Dial to_;
  };
  Executor& executor_;
  net::Hello hello_;
};

// The called node: at the relay, and it answers punches.
struct Far {
  explicit Far(testing::LoopbackRelay& relay) {
    listener = TcpListener::open({loopback, 0}).value();
    TunnelOptions options;
    options.own = listener.local().value();
    tunnels = Tunnels::start(the_clock, the_entropy, *executor, options).value();
    run([&] {
      puncher = std::make_unique<Puncher>(*tunnels, the_clock, /*one_lan=*/true, 1, [] {});
      puncher->set_servers({relay.endpoint});
      puncher->probe_nat();
      Tunnels::Events events;
      events.reserve = [&relay, id = id](const Endpoint&, const Tunnels::Ticket& ticket) {
        ticket(relay.role->reserve(id, loopback));
      };
      tunnels->set_events(std::move(events));
      tunnels->hold({relay.endpoint});
    });
  }
  ~Far() {
    run([&] { tunnels->set_events({}); });
    tunnels.reset();
    run([&] { puncher.reset(); });
  }
  void run(const std::function<void()>& task) const {
    std::promise<void> done;
    if (!executor->post([&] {
          task();
          done.set_value();
        }))
      qFatal("the executor is full");
    done.get_future().wait();
  }
  crypto::KeyPair key = key_of(2);
  net::NodeId id = crypto::node_id(key.public_key());
  TcpListener listener;
  std::unique_ptr<Executor> executor = make_thread_executor("far", 256);
  std::unique_ptr<Tunnels> tunnels;
  std::unique_ptr<Puncher> puncher;
};

}  // namespace

class TestPathTransport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void a_node_that_can_be_dialled_is_dialled();
  void a_relayed_node_is_called_through_its_relay();
  void a_relayed_connection_goes_on_over_a_punched_one();
  void a_node_that_can_not_punch_stays_relayed();
  void a_punch_leads_to_no_port_of_a_service();
  void a_punch_leads_to_the_callers_own_address_only();
  void servers_of_another_ip_version_are_not_asked();
  void who_is_dialled_itself_dials_a_turn_server_first();
  void others_come_through_the_relay_and_are_let_in();
  void who_is_not_let_in_stays_relayed();
  void a_call_outlasts_two_moves_of_its_connection();
  void only_the_way_that_is_taken_counts_at_the_gate();
  void who_has_the_least_traffic_makes_room();

 private:
  void run(const std::function<void()>& task) const {
    std::promise<void> done;
    QVERIFY(executor_->post([&] {
      task();
      done.set_value();
    }));
    done.get_future().wait();
  }
  // The far node's record, as this node has it.
  void know(std::vector<net::NodeEndpoint> endpoints, std::uint64_t features) {
    net::NodeRecord record;
    record.sequence = ++sequence_;
    record.made = the_clock.wall_now();
    record.expires = record.made + std::chrono::hours(1);
    record.endpoints = std::move(endpoints);
    record.features = features;
    record.program = "test";
    QVERIFY(net::sign_node_record(record, far_->key, network_id()).ok());
    run([&] { QVERIFY(book_->put(record, the_clock.wall_now()).ok()); });
  }
  std::shared_ptr<net::PeerChannel> connect(const Endpoint& at) {
    std::promise<std::shared_ptr<net::PeerChannel>> result;
    run([&] {
      paths_->connect({at, far_->id}, generous, [&](Expected<std::shared_ptr<net::PeerChannel>> channel) {
        result.set_value(channel.ok() ? *channel : nullptr);
      });
    });
    return result.get_future().get();
  }
  PathTransport::Path path() {
    PathTransport::Path found;
    run([&] { found = paths_->path_to(far_->id, relay_->endpoint); });
    return found;
  }
  void answer_punch(Bytes request, net::CallDone done) {
    QVERIFY(far_->executor->post([this, request = std::move(request), done = std::move(done)] {
      far_->puncher->answer({crypto::node_id(key_of(1).public_key()), {loopback, 1}}, request,
                            [this, done](Expected<Bytes> answer) {
                              QVERIFY(executor_->post([done, answer = std::move(answer)] { done(answer); }));
                            });
    }));
  }
  void close(std::shared_ptr<net::PeerChannel>& channel) {
    run([&] { channel.reset(); });
  }

  std::uint64_t sequence_ = 0;
  std::unique_ptr<testing::LoopbackRelay> relay_;
  std::unique_ptr<Far> far_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Tunnels> tunnels_;
  std::unique_ptr<net::NodeBook> book_;
  std::unique_ptr<Puncher> puncher_;
  std::unique_ptr<PathTransport> paths_;
};

void TestPathTransport::init() {
  relay_ = std::make_unique<testing::LoopbackRelay>();
  far_ = std::make_unique<Far>(*relay_);
  executor_ = make_thread_executor("near", 256);
  wire_ = std::make_unique<Wire>(*executor_);
  tunnels_ = Tunnels::start(the_clock, the_entropy, *executor_, {}).value();
  book_ = std::make_unique<net::NodeBook>(network_id());
  run([&] {
    paths_ = std::make_unique<PathTransport>(*wire_, tunnels_.get(), *book_, the_clock);
    puncher_ = std::make_unique<Puncher>(*tunnels_, the_clock, /*one_lan=*/true, 1, [] {});
    paths_->set_puncher(puncher_.get());
    puncher_->set_servers({relay_->endpoint});
    puncher_->probe_nat();
  });
  QTRY_VERIFY_WITH_TIMEOUT(relay_->role->joined() == 1, 20'000);
  const auto punchable = [&] {
    bool near = false, far = false;
    run([&] { near = puncher_->punchable(); });
    far_->run([&] { far = far_->puncher->punchable(); });
    return near && far;
  };
  QTRY_VERIFY_WITH_TIMEOUT(punchable(), 20'000);
}

void TestPathTransport::cleanup() {
  tunnels_.reset();
  run([&] {
    paths_.reset();
    puncher_.reset();
  });
  executor_.reset();
  wire_.reset();
  book_.reset();
  far_.reset();
  relay_.reset();
}

void TestPathTransport::a_node_that_can_be_dialled_is_dialled() {
  const Endpoint direct{IpAddress::v4(11, 22, 33, 44), 9000};
  know({{net::Reach::Relayed, relay_->endpoint}, {net::Reach::Direct, direct}}, 0);
  std::optional<net::Contact> contact;
  run([&] { contact = paths_->contact_of(*book_->find(far_->id, the_clock.wall_now()), true); });
  QVERIFY(contact && contact->endpoint == direct);  // rather than through the relay
  auto channel = connect(direct);
  QVERIFY(channel);
  QCOMPARE(wire_->dialled.size(), std::size_t{1});
  QCOMPARE(wire_->dialled[0].endpoint, direct);
  run([&] { QCOMPARE(paths_->path_to(far_->id, direct).way, Way::Direct); });
  close(channel);
}

void TestPathTransport::a_relayed_node_is_called_through_its_relay() {
  know({{net::Reach::Relayed, relay_->endpoint}}, 0);
  auto channel = connect(relay_->endpoint);
  QVERIFY(channel);
  QVERIFY(wire_->dialled[0].endpoint.ip == loopback && wire_->dialled[0].endpoint != relay_->endpoint);
  QVERIFY(wire_->dialled[0].id == far_->id);
  QCOMPARE(channel->endpoint(), relay_->endpoint);
  QCOMPARE(path().way, Way::Relayed);
  QTRY_COMPARE(relay_->role->counters().sessions, std::uint64_t{1});
  close(channel);
}

void TestPathTransport::a_relayed_connection_goes_on_over_a_punched_one() {
  know({{net::Reach::Relayed, relay_->endpoint}}, static_cast<std::uint64_t>(net::Feature::Punch));
  net::CallDone slow;
  std::vector<Endpoint> over;
  wire_->called = [&](const Endpoint& dialled, net::Method method, Bytes request, net::CallDone done) {
    if (method == net::Method::Ping) {
      over.push_back(dialled);
      if (over.size() == 1)
        slow = std::move(done);  // under way for long
      else
        done(std::move(request));
      return;
    }
    QCOMPARE(method, net::Method::Punch);
    answer_punch(std::move(request), std::move(done));
  };
  auto channel = connect(relay_->endpoint);
  QVERIFY(channel);
  bool slow_ended = false;
  run([&] {
    channel->call(net::Method::Ping, {1}, generous,
                  [&](const Expected<Bytes>& answer) { slow_ended = answer.ok(); });
    paths_->punch_relayed();
  });
  QTRY_VERIFY_WITH_TIMEOUT(path().way == Way::Punched, 30'000);
  QVERIFY(path().at.ip == loopback && path().at != relay_->endpoint);
  const net::Dial& punched = wire_->dialled.back();
  QVERIFY(punched.id == far_->id);
  // The port that gRPC is sent to leads to where the far node listens.
  auto socket = nat::dial_until(io, punched.endpoint, {}, io.now() + generous);
  QVERIFY(socket.ok());
  std::size_t arrivals = 0;
  const auto arrived = [&] {
    const auto accepted = far_->listener.accept();
    arrivals += accepted.ok() && accepted->has_value() ? 1 : 0;
    return arrivals == 2;
  };
  QTRY_VERIFY_WITH_TIMEOUT(arrived(), 20'000);  // the relayed one and this
  // Calls under way end on the old connection, new calls take the new one, and the old one closes.
  run([&] {
    QVERIFY(!slow_ended);
    slow(Bytes{1});
    slow = nullptr;
    QVERIFY(slow_ended);
    channel->call(net::Method::Ping, {2}, generous, [](const Expected<Bytes>&) {});
    QCOMPARE(over.size(), std::size_t{2});
    QVERIFY(over[0] == wire_->dialled[0].endpoint && over[1] == punched.endpoint);
    QCOMPARE(wire_->open, std::size_t{1});
  });
  close(channel);
}

void TestPathTransport::a_node_that_can_not_punch_stays_relayed() {
  know({{net::Reach::Relayed, relay_->endpoint}}, 0);
  wire_->called = [](const Endpoint&, net::Method, const Bytes&, const net::CallDone&) {
    QFAIL("it is not to be asked");
  };
  auto channel = connect(relay_->endpoint);
  QVERIFY(channel);
  run([&] { paths_->punch_relayed(); });
  QCOMPARE(path().way, Way::Relayed);
  close(channel);
}

void TestPathTransport::a_punch_leads_to_no_port_of_a_service() {
  const auto ask = [&](const Endpoint& remote) {
    std::promise<Expected<Bytes>> answer;
    far_->run([&] {
      far_->puncher->answer({far_->id, {loopback, 1}}, dht::encode_endpoint(remote),
                            [&](Expected<Bytes> result) { answer.set_value(std::move(result)); });
    });
    return answer.get_future().get();
  };
  const auto refused = ask({loopback, 22});
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  // And not all that is asked for is dialled.
  int exhausted = 0;
  for (int i = 0; i < 6; ++i) {
    const auto answer = ask({loopback, 40'000});
    exhausted += !answer.ok() && answer.error().code == ErrorCode::Exhausted ? 1 : 0;
  }
  QVERIFY(exhausted >= 3);
}

namespace {

const Endpoint turn{IpAddress::v4(11, 22, 33, 9), 50'000}, seen_at{IpAddress::v4(11, 22, 44, 14), 40'000};

}  // namespace

// Of the internet: the caller's address is what its connection or its relay says.
void TestPathTransport::a_punch_leads_to_the_callers_own_address_only() {
  std::unique_ptr<Puncher> strict;
  far_->run([&] {
    strict = std::make_unique<Puncher>(*far_->tunnels, the_clock, /*one_lan=*/false, 1, [] {});
    strict->set_servers({relay_->endpoint});
    strict->probe_nat();
  });
  const auto punchable = [&] {
    bool found = false;
    far_->run([&] { found = strict->punchable(); });
    return found;
  };
  QTRY_VERIFY_WITH_TIMEOUT(punchable(), 20'000);
  std::promise<Expected<Bytes>> answer;
  const Endpoint victim{IpAddress::v4(11, 22, 33, 44), 40'000};
  far_->run([&] {
    strict->answer({crypto::node_id(key_of(1).public_key()), {loopback, 1}}, dht::encode_endpoint(victim),
                   [&](Expected<Bytes> result) { answer.set_value(std::move(result)); });
  });
  const auto refused = answer.get_future().get();
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY2(refused.error().message.find("relay reports") != std::string::npos,
           refused.error().message.c_str());
  far_->run([&] { strict.reset(); });
}

// One that does not answer comes first. A finding of the other version would say nothing of this one.
void TestPathTransport::servers_of_another_ip_version_are_not_asked() {
  const Endpoint six{platform::parse_ip("2600::7").value(), 9000};
  const auto punchable = [&] {
    bool found = false;
    far_->run([&] { found = far_->puncher->punchable(); });
    return found;
  };
  far_->run([&] {
    far_->puncher->set_servers({six, relay_->endpoint, {six.ip, 9001}}, Endpoint{loopback, 40'000});
    far_->puncher->restart_probe();
    far_->puncher->probe_nat();
  });
  QTRY_VERIFY_WITH_TIMEOUT(punchable(), 20'000);
  std::promise<Expected<Bytes>> answer;
  far_->run([&] {
    far_->puncher->answer({crypto::node_id(key_of(1).public_key()), {loopback, 1}}, dht::encode_endpoint(six),
                          [&](Expected<Bytes> result) { answer.set_value(std::move(result)); });
  });
  const auto refused = answer.get_future().get();
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Unsupported);
  QVERIFY2(refused.error().message.find("IPv4 only") != std::string::npos, refused.error().message.c_str());
}

void TestPathTransport::who_is_dialled_itself_dials_a_turn_server_first() {
  know({{net::Reach::Turn, turn}, {net::Reach::Relayed, relay_->endpoint}}, 0);
  std::optional<net::Contact> contact;
  run([&] {
    paths_->set_own({true, /*dialled=*/true, seen_at});
    contact = paths_->contact_of(*book_->find(far_->id, the_clock.wall_now()), true);
  });
  QVERIFY(contact && contact->endpoint == turn);
  auto channel = connect(turn);
  QVERIFY(channel);
  QCOMPARE(wire_->dialled.size(), std::size_t{1});
  QCOMPARE(wire_->dialled[0].endpoint, turn);
  QVERIFY(wire_->dialled[0].id == far_->id);
  run([&] { QCOMPARE(paths_->path_to(far_->id, turn).way, Way::Turn); });
  close(channel);
  // Not let in after all: through the relay.
  wire_->closed = turn;
  channel = connect(turn);
  QVERIFY(channel);
  run([&] {
    const PathTransport::Path path = paths_->path_to(far_->id, turn);
    QVERIFY(path.way == Way::Relayed && path.at == relay_->endpoint);
  });
  close(channel);
}

void TestPathTransport::others_come_through_the_relay_and_are_let_in() {
  know({{net::Reach::Turn, turn}, {net::Reach::Relayed, relay_->endpoint}}, 0);
  std::vector<Endpoint> over, told;
  wire_->called = [&](const Endpoint& dialled, net::Method method, const Bytes& request,
                      const net::CallDone& done) {
    over.push_back(dialled);
    if (method == net::Method::LetIn) told.push_back(dht::decode_endpoint(request).value());
    QVERIFY(executor_->post([done] { done(Bytes()); }));
  };
  run([&] { paths_->set_own({true, /*dialled=*/false, seen_at}); });
  auto channel = connect(turn);
  QVERIFY(channel);
  QVERIFY(wire_->dialled[0].endpoint.ip == loopback);
  run([&] {
    QCOMPARE(paths_->path_to(far_->id, turn).way, Way::Relayed);
    paths_->ask_for_turn_permissions();
    paths_->ask_for_turn_permissions();  // once is enough
  });
  const auto way = [&] {
    PathTransport::Path path;
    run([&] { path = paths_->path_to(far_->id, turn); });
    return path;
  };
  QTRY_VERIFY_WITH_TIMEOUT(way().way == Way::Turn, 20'000);
  QVERIFY(way().at == turn);
  QCOMPARE(told, std::vector<Endpoint>{seen_at});
  run([&] { channel->call(net::Method::Ping, {1}, generous, [](const Expected<Bytes>&) {}); });
  QCOMPARE(over.back(), turn);
  // No relay stands in for it at present: dialled all the same.
  close(channel);
  know({{net::Reach::Turn, turn}}, 0);
  channel = connect(turn);
  QVERIFY(channel && way().way == Way::Turn);
  close(channel);
}

void TestPathTransport::who_is_not_let_in_stays_relayed() {
  know({{net::Reach::Turn, turn}, {net::Reach::Relayed, relay_->endpoint}}, 0);
  std::size_t asked = 0;
  wire_->called = [&](const Endpoint&, net::Method, const Bytes&, const net::CallDone& done) {
    ++asked;
    QVERIFY(executor_->post([done] { done(make_error(ErrorCode::Exhausted, "asked too often")); }));
  };
  run([&] { paths_->set_own({true, false, {}}); });
  auto channel = connect(turn);
  QVERIFY(channel);
  run([&] { paths_->ask_for_turn_permissions(); });
  QCOMPARE(asked, std::size_t{0});  // where the world sees this node is not known
  run([&] {
    paths_->set_own({true, false, seen_at});
    paths_->ask_for_turn_permissions();
  });
  run([] {});
  run([&] { paths_->ask_for_turn_permissions(); });  // not again at once
  QCOMPARE(asked, std::size_t{1});
  run([&] { QCOMPARE(paths_->path_to(far_->id, turn).way, Way::Relayed); });
  close(channel);
  // An address of somebody's home is not dialled for a record.
  const Endpoint inside{IpAddress::v4(192, 168, 1, 1), 80};
  know({{net::Reach::Turn, inside}}, 0);
  run([&] { QVERIFY(!paths_->contact_of(*book_->find(far_->id, the_clock.wall_now()), false)); });
}

void TestPathTransport::a_call_outlasts_two_moves_of_its_connection() {
  know({{net::Reach::Turn, turn}, {net::Reach::Relayed, relay_->endpoint}},
       static_cast<std::uint64_t>(net::Feature::Punch));
  net::CallDone slow;
  wire_->called = [&](const Endpoint&, net::Method method, Bytes request, net::CallDone done) {
    if (method == net::Method::Punch) return answer_punch(std::move(request), std::move(done));
    if (method == net::Method::Ping && !slow) {
      slow = std::move(done);  // under way for long
      return;
    }
    QVERIFY(executor_->post([done = std::move(done)] { done(Bytes()); }));
  };
  run([&] { paths_->set_own({true, /*dialled=*/false, seen_at}); });
  auto channel = connect(turn);
  QVERIFY(channel);
  bool slow_ended = false;
  const auto call = [&](const net::CallDone& done) { channel->call(net::Method::Ping, {1}, generous, done); };
  run([&] {
    call([&](const Expected<Bytes>& answer) { slow_ended = answer.ok(); });
    paths_->ask_for_turn_permissions();
  });
  QTRY_VERIFY_WITH_TIMEOUT(path().way == Way::Turn, 20'000);
  run([&] { paths_->punch_relayed(); });
  QTRY_VERIFY_WITH_TIMEOUT(path().way == Way::Punched, 30'000);
  run([&] {
    call([](const Expected<Bytes>&) {});
    QCOMPARE(wire_->open, std::size_t{2});  // the relayed one in use, and the punched one
    slow(Bytes{1});
    QVERIFY(slow_ended);
    slow = [](const Expected<Bytes>&) {};  // lets go of the connection; no later call is slow
    call([](const Expected<Bytes>&) {});
    QCOMPARE(wire_->open, std::size_t{1});
  });
  close(channel);
}

// Each connection takes one of its two ways, and the other one's address must not wear out by that.
void TestPathTransport::only_the_way_that_is_taken_counts_at_the_gate() {
  const Endpoint relay{IpAddress::v4(11, 22, 55, 1), 9000};
  net::DialLimits few;
  few.address_burst = 2;
  few.address_per_second = 0;
  net::DialGate gate(net::DialRules{}, the_clock, 5, few);
  run([&] {
    paths_->set_gate(gate, *executor_);
    paths_->set_own({false, /*dialled=*/true, seen_at});
  });
  const auto connect_to = [&](const Endpoint& called_relay, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      know({{net::Reach::Turn, turn}, {net::Reach::Relayed, called_relay}}, 0);
      auto channel = connect(turn);
      QVERIFY(channel);
      close(channel);
    }
  };
  connect_to(relay, 3);
  run([&] { QVERIFY(gate.admit(relay, 2).ok()); });
  // The other way round: the relay first.
  run([&] {
    gate.name(relay_->endpoint);
    paths_->set_own({false, /*dialled=*/false, seen_at});
    book_->remove(far_->id);  // no address is proven any more
  });
  connect_to(relay_->endpoint, 3);
  run([&] { QVERIFY(gate.admit(turn, 2).ok()); });
}

void TestPathTransport::who_has_the_least_traffic_makes_room() {
  const auto number = [](std::uint32_t value) {
    net::NodeId id{};
    store_le(id.data(), value);
    return id;
  };
  TrafficBook book;
  for (std::uint32_t i = 0; i < TrafficBook::max_peers; ++i) book.count(number(i), i == 7 ? 10u : 100u, 50);
  const net::NodeId late = number(1'000'000);
  book.count(late, 1000, 1);
  QCOMPARE(book.of(late).in, std::uint64_t{1000});
  QCOMPARE(book.of(number(7)).in, std::uint64_t{0});
  QCOMPARE(book.of(number(8)).in, std::uint64_t{100});
  book.count(number(8), 1, 0);
  QCOMPARE(book.of(number(8)).in, std::uint64_t{101});
  QCOMPARE(book.sum().in, std::uint64_t{100 * (TrafficBook::max_peers - 1) + 10 + 1000 + 1});
}

NS_TEST(TestPathTransport)
#include "test_path_transport.moc"
