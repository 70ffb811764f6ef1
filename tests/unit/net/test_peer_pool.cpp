// The pool of connections, on the simulated network: shared, bounded, given up when idle, and patient with
// the dead.
#include <QtTest>
#include <deque>

#include "core/net/peer_pool.h"
#include "core/sim/transport.h"
#include "tests/support/busy_executor.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr auto method = static_cast<Method>(60'000);
using neuroshard::test::second;

NodeId id_of(std::uint8_t number) {
  NodeId id{};
  id.fill(number);
  return id;
}

Contact contact_of(std::uint8_t number) {
  return {id_of(number), {platform::IpAddress::v4(11, 0, 0, number), 9000}};
}

struct Echo final : PeerService {
  void on_call(const Caller&, Method, Bytes request, Respond respond) override {
    ++calls;
    if (silent)
      kept.push_back(std::move(respond));
    else
      respond(std::move(request));
  }
  void on_stream(const Caller&, Method, std::shared_ptr<PeerStream> stream) override {
    streams.push_back(std::move(stream));
  }
  int calls = 0;
  bool silent = false;
  std::vector<Respond> kept;
  std::vector<std::shared_ptr<PeerStream>> streams;
};

struct World {
  World() { bans = std::make_unique<BanList>(world.clock()); }
  sim::SimTransport& add(std::uint8_t number) {
    executors.push_back(std::make_unique<sim::HostExecutor>(world));
    const Contact contact = contact_of(number);
    transports.push_back(std::make_unique<sim::SimTransport>(
        sim::TransportServices{world, network, population, *bans, refusals}, *executors.back(), contact.id,
        contact.endpoint, sim::Nat::None, Hello{}));
    transports.back()->serve(&echo);
    return *transports.back();
  }
  std::optional<Expected<Bytes>> call(PeerPool& pool, std::uint8_t to, Bytes request = {1}) {
    std::optional<Expected<Bytes>> answer;
    pool.call(contact_of(to), method, std::move(request), 5 * second,
              [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
    world.run_until([&] { return answer.has_value(); }, world.now() + std::chrono::minutes(1));
    return answer;
  }

  sim::World world;
  sim::Network network{world, {}, 3};
  sim::Population population;
  std::unique_ptr<BanList> bans;
  RefusalCounts refusals;
  Echo echo;
  std::vector<std::unique_ptr<sim::HostExecutor>> executors;
  std::vector<std::unique_ptr<sim::SimTransport>> transports;
};

// Connections whose calls end when the test says so.
struct HeldTransport final : PeerTransport {
  struct Channel final : PeerChannel {
    explicit Channel(HeldTransport* owner) : transport(owner) {}
    const NodeId& id() const override { return peer; }
    const Hello& hello() const override { return transport->own; }
    platform::Endpoint endpoint() const override { return contact_of(2).endpoint; }
    void call(Method, Bytes, Duration, CallDone done) override {
      transport->under_way.push_back(std::move(done));
    }
    std::shared_ptr<PeerStream> open(Method, Duration) override { return nullptr; }
    HeldTransport* transport;
    NodeId peer = id_of(2);
  };
  void connect(const Dial&, Duration, Connected done) override {
    ++dials;
    done(std::shared_ptr<PeerChannel>(std::make_shared<Channel>(this)));
  }
  void set_hello(Hello hello) override { own = std::move(hello); }
  const Hello& hello() const override { return own; }
  void end_first(Expected<Bytes> answer) {
    const CallDone done = std::move(under_way.front());
    under_way.pop_front();
    done(std::move(answer));
  }
  std::deque<CallDone> under_way;
  Hello own;
  int dials = 0;
};

// The end of a stream that reads.
struct Line {
  void open(PeerPool& pool, const Contact& to) {
    pool.open(to, method, Duration::max(), [this](Expected<std::shared_ptr<PeerStream>> opened) {
      if (opened.ok()) stream = std::move(opened).value();
    });
  }
  void read() {
    stream->read([this](const Expected<std::optional<ByteChain>>& message) {
      if (message.ok())
        ++messages;
      else
        error = message.error().message;
    });
  }
  std::shared_ptr<PeerStream> stream;
  int messages = 0;
  std::string error;
};

}  // namespace

class TestPeerPool : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void calls_share_a_connection();
  void an_idle_connection_is_given_up();
  void the_dead_are_not_dialled_again_at_once();
  void a_peer_that_comes_back_is_found();
  void who_is_banned_is_told_nothing_more();
  void the_end_of_a_ban_is_the_end_of_its_error();
  void a_stream_keeps_its_connection();
  void a_ban_ends_streams();
  void a_full_executor_loses_no_answer();
  void large_answers_and_errors_are_no_round_trips();
  void what_waits_is_bounded();
  void a_call_whose_connection_breaks_before_it_leaves();
  void an_address_that_is_named_during_a_dial_is_dialled_next();
  void many_false_addresses_hold_up_a_call_for_seconds_only();
  void peers_are_bounded();
  void contacts_that_nobody_reaches_end_no_connection();
  void deadlines_grow_with_bytes();
  void bans_end_and_are_bounded();
};

void TestPeerPool::calls_share_a_connection() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  int answers = 0;
  for (int i = 0; i < 20; ++i) {
    pool.call(contact_of(2), method, {7}, 5 * second,
              [&](const Expected<Bytes>& answer) { answers += answer.ok(); });
  }
  QVERIFY(w.world.run_until([&] { return answers == 20; }, w.world.now() + 10 * second));
  QCOMPARE(w.network.counters().handshakes, 1u);
  const auto view = pool.peers();
  QCOMPARE(view.size(), std::size_t(1));
  QVERIFY(view[0].connected && view[0].id == id_of(2));
  QCOMPARE(view[0].calls, 20u);
  QVERIFY(view[0].round_trip && *view[0].round_trip > std::chrono::milliseconds(1));
}

void TestPeerPool::an_idle_connection_is_given_up() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  QVERIFY(w.call(pool, 2)->ok());
  w.world.run_for(50 * second);
  QCOMPARE(pool.connections(), std::size_t(1));
  w.world.run_for(40 * second);
  QCOMPARE(pool.connections(), std::size_t(0));
  QVERIFY(w.call(pool, 2)->ok());
  w.world.run_for(std::chrono::minutes(10));
  QVERIFY(pool.peers().empty());  // and forgotten
}

void TestPeerPool::the_dead_are_not_dialled_again_at_once() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  QCOMPARE(w.call(pool, 9)->error().code, ErrorCode::Timeout);
  const auto dials = w.network.counters().calls;
  for (int i = 0; i < 10; ++i) QVERIFY(!w.call(pool, 9)->ok());
  QCOMPARE(w.network.counters().calls, dials);
  w.world.run_for(2 * second);
  QVERIFY(!w.call(pool, 9)->ok());
  QCOMPARE(w.network.counters().calls, dials + 1);
  w.world.run_for(std::chrono::milliseconds(1500));  // the pause has doubled
  QVERIFY(!w.call(pool, 9)->ok());
  QCOMPARE(w.network.counters().calls, dials + 1);
}

void TestPeerPool::a_peer_that_comes_back_is_found() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  sim::SimTransport& other = w.add(2);
  QVERIFY(w.call(pool, 2)->ok());
  w.network.set_online(other.host(), false);
  QCOMPARE(w.call(pool, 2)->error().code, ErrorCode::Timeout);
  QCOMPARE(pool.connections(), std::size_t(0));
  w.network.set_online(other.host(), true);
  QVERIFY(w.call(pool, 2)->ok());
  QCOMPARE(pool.peers()[0].failures, 1u);
}

void TestPeerPool::who_is_banned_is_told_nothing_more() {
  World w;
  sim::SimTransport& own = w.add(1);
  BanList bans(w.world.clock());  // the caller's alone: the other end would go on answering
  PeerPool pool(own, *w.executors[0], w.world.clock(), {}, &bans);
  w.add(2);
  QVERIFY(w.call(pool, 2)->ok());
  QCOMPARE(pool.connections(), std::size_t(1));
  bans.ban(id_of(2), std::chrono::hours(1), "two of something");
  const auto answer = w.call(pool, 2);
  QCOMPARE(answer->error().code, ErrorCode::Denied);
  QVERIFY2(answer->error().message.find("two of something") != std::string::npos,
           answer->error().message.c_str());
  QCOMPARE(pool.connections(), std::size_t(0));
  QVERIFY(pool.peers()[0].error.has_value());  // people see why
  QCOMPARE(w.echo.calls, 1);
  // Also where nobody asks for it any more.
  w.add(3);
  QVERIFY(w.call(pool, 3)->ok());
  bans.ban(id_of(3), std::chrono::hours(1), "the same");
  w.world.run_for(20 * second);
  QCOMPARE(pool.connections(), std::size_t(0));
  bans.lift(id_of(2));
  QVERIFY(w.call(pool, 2)->ok());
}

void TestPeerPool::the_end_of_a_ban_is_the_end_of_its_error() {
  World w;
  sim::SimTransport& own = w.add(1);
  BanList bans(w.world.clock());
  PeerPool pool(own, *w.executors[0], w.world.clock(), {}, &bans);
  QCOMPARE(w.call(pool, 9)->error().code, ErrorCode::Timeout);
  bans.ban(id_of(9), std::chrono::hours(1), "two of something");
  QCOMPARE(w.call(pool, 9)->error().code, ErrorCode::Denied);
  QCOMPARE(pool.peers()[0].error->code, ErrorCode::Denied);
  bans.lift(id_of(9));
  QCOMPARE(w.call(pool, 9)->error().code, ErrorCode::Timeout);  // of the dial, whose pause goes on
  QCOMPARE(pool.peers()[0].error->code, ErrorCode::Timeout);
}

void TestPeerPool::a_stream_keeps_its_connection() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  Line line;
  line.open(pool, contact_of(2));
  QVERIFY(w.world.run_until([&] { return w.echo.streams.size() == 1; }, w.world.now() + 10 * second));
  line.read();
  w.world.run_for(std::chrono::minutes(5));  // without calls
  QCOMPARE(pool.connections(), std::size_t(1));
  const auto send = [&] { w.echo.streams[0]->write({7}, [](const Expected<void>&) {}); };
  send();
  w.world.run_for(second);
  QCOMPARE(line.error, std::string());
  QCOMPARE(line.messages, 1);
  // Another connection serves the calls after one without an answer.
  line.read();
  w.echo.silent = true;
  QCOMPARE(w.call(pool, 2)->error().code, ErrorCode::Timeout);
  QCOMPARE(pool.connections(), std::size_t(0));
  w.echo.silent = false;
  QVERIFY(w.call(pool, 2)->ok());
  send();
  w.world.run_for(second);
  QCOMPARE(line.error, std::string());
  QCOMPARE(line.messages, 2);
  QCOMPARE(pool.connections(), std::size_t(1));
  line.stream.reset();
  w.world.run_for(std::chrono::minutes(2));
  QCOMPARE(pool.connections(), std::size_t(0));
}

// Also those on a connection that was replaced.
void TestPeerPool::a_ban_ends_streams() {
  World w;
  sim::SimTransport& own = w.add(1);
  BanList bans(w.world.clock());
  PeerPool pool(own, *w.executors[0], w.world.clock(), {}, &bans);
  w.add(2);
  Line line;
  line.open(pool, contact_of(2));
  QVERIFY(w.world.run_until([&] { return w.echo.streams.size() == 1; }, w.world.now() + 10 * second));
  line.read();
  w.echo.silent = true;
  QCOMPARE(w.call(pool, 2)->error().code, ErrorCode::Timeout);
  bans.ban(id_of(2), std::chrono::hours(1), "two of something");
  w.world.run_for(20 * second);
  QVERIFY2(line.error.find("two of something") != std::string::npos, line.error.c_str());
}

void TestPeerPool::a_full_executor_loses_no_answer() {
  const SystemClock clock;
  testing::BusyExecutor executor;
  HeldTransport transport;
  PeerPool pool(transport, executor, clock);
  const auto call = [&] { pool.call(contact_of(2), method, {1}, second, [](const Expected<Bytes>&) {}); };
  call();
  executor.manual.run();
  QCOMPARE(transport.under_way.size(), std::size_t(1));
  executor.refused = 1;
  call();
  call();
  executor.manual.run();
  QCOMPARE(transport.under_way.size(), std::size_t(3));
}

void TestPeerPool::large_answers_and_errors_are_no_round_trips() {
  ManualClock clock;
  testing::ManualExecutor executor;
  HeldTransport transport;
  PeerPool pool(transport, executor, clock);
  const auto call = [&](Duration took, Expected<Bytes> answer) {
    pool.call(contact_of(2), method, {1}, 10 * second, [](const Expected<Bytes>&) {});
    executor.run();
    clock.advance(took);
    transport.end_first(std::move(answer));
  };
  call(3 * second, Bytes(1u << 20));
  call(2 * second, make_error(ErrorCode::Exhausted, "busy"));
  QVERIFY(!pool.peers()[0].round_trip);
  constexpr Duration way = std::chrono::milliseconds(20);
  call(way, Bytes{1});
  QVERIFY(pool.peers()[0].round_trip == way);
}

void TestPeerPool::what_waits_is_bounded() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  w.echo.silent = true;
  int exhausted = 0, timeouts = 0;
  const auto count = [&](const Expected<Bytes>& answer) {
    ++(answer.error().code == ErrorCode::Exhausted ? exhausted : timeouts);
  };
  for (int i = 0; i < 50; ++i) pool.call(contact_of(2), method, {1}, second, count);
  w.world.run_for(10 * second);
  QCOMPARE(timeouts, 24);        // under way
  QCOMPARE(exhausted, 50 - 24);  // 18 did not even wait for the connection
  QCOMPARE(w.echo.calls, 24);
}

// The second call has found the connection and waits for its turn when the first one's failure comes.
void TestPeerPool::a_call_whose_connection_breaks_before_it_leaves() {
  const SystemClock clock;
  testing::ManualExecutor executor;
  HeldTransport transport;
  PeerPool pool(transport, executor, clock);
  const Error broken = make_error(ErrorCode::Unavailable, "the connection is gone");
  std::vector<ErrorCode> ends;
  const auto call = [&] {
    pool.call(contact_of(2), method, {1}, second, [&](const Expected<Bytes>& answer) {
      ends.push_back(answer.ok() ? ErrorCode::Internal : answer.error().code);
    });
  };
  call();
  executor.run();
  QCOMPARE(transport.under_way.size(), std::size_t(1));
  call();
  transport.end_first(broken);
  executor.run();
  QCOMPARE(transport.under_way.size(), std::size_t(1));
  transport.end_first(broken);
  QCOMPARE(ends, (std::vector<ErrorCode>{ErrorCode::Unavailable, ErrorCode::Unavailable}));
  QCOMPARE(transport.dials, 1);
  call();
  executor.run();
  QCOMPARE(transport.dials, 2);  // anew, for who comes after
  transport.end_first(Bytes{1});
  QCOMPARE(pool.connections(), std::size_t(1));
}

void TestPeerPool::an_address_that_is_named_during_a_dial_is_dialled_next() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  const Contact false_one{id_of(2), contact_of(99).endpoint}, true_one = contact_of(2);
  std::optional<bool> first, then;
  const auto call = [&](const Contact& to, std::optional<bool>& answered) {
    pool.call(to, method, {1}, 5 * second, [&](const Expected<Bytes>& answer) { answered = answer.ok(); });
  };
  call(false_one, first);
  call(true_one, then);
  QVERIFY(w.world.run_until([&] { return first && then; }, w.world.now() + 20 * second));
  QVERIFY(!*first && *then);
  QCOMPARE(pool.path_to(true_one), CallPath::There);
  QCOMPARE(pool.path_to(contact_of(3)), CallPath::None);
  // Over the connection that there is, which says nothing about that address.
  call(false_one, first);
  QVERIFY(w.world.run_until([&] { return *first; }, w.world.now() + 20 * second));
  QCOMPARE(pool.path_to(false_one), CallPath::Elsewhere);
  QVERIFY(pool.connected_at(id_of(2)) == true_one.endpoint);
}

void TestPeerPool::many_false_addresses_hold_up_a_call_for_seconds_only() {
  World w;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock());
  w.add(2);
  for (std::uint8_t i = 90; i < 98; ++i)
    pool.call({id_of(2), contact_of(i).endpoint}, method, {1}, 5 * second, [](const Expected<Bytes>&) {});
  std::optional<bool> answered;
  pool.call(contact_of(2), method, {1}, 5 * second,
            [&](const Expected<Bytes>& answer) { answered = answer.ok(); });
  QVERIFY(w.world.run_until([&] { return answered.has_value(); }, w.world.now() + 15 * second));
  QVERIFY(w.call(pool, 2)->ok());  // no address is waited for any more
}

void TestPeerPool::peers_are_bounded() {
  World w;
  PoolLimits limits;
  limits.peers = 3;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock(), limits);
  for (std::uint8_t i = 2; i <= 6; ++i) {
    w.add(i);
    QVERIFY(w.call(pool, i)->ok());
    w.world.run_for(second);
  }
  QCOMPARE(pool.peers().size(), std::size_t(3));
  for (const PeerView& view : pool.peers()) QVERIFY(view.id != id_of(2) && view.id != id_of(3));
}

void TestPeerPool::contacts_that_nobody_reaches_end_no_connection() {
  World w;
  PoolLimits limits;
  limits.peers = 3;
  sim::SimTransport& own = w.add(1);
  PeerPool pool(own, *w.executors[0], w.world.clock(), limits);
  for (std::uint8_t i = 2; i <= 3; ++i) {
    w.add(i);
    QVERIFY(w.call(pool, i)->ok());
  }
  for (std::uint8_t i = 20; i <= 23; ++i) QVERIFY(!w.call(pool, i)->ok());
  QCOMPARE(pool.peers().size(), std::size_t(3));
  QCOMPARE(pool.connections(), std::size_t(2));
}

void TestPeerPool::deadlines_grow_with_bytes() {
  QCOMPARE(call_deadline(Duration(0), 0, 0), least_deadline);
  QCOMPARE(call_deadline(3 * second, 0, 0), 3 * second);
  // 1 MB at 20 Mbit/s takes 0.4 s: it must fit.
  QVERIFY(call_deadline(Duration(0), 1'000'000, 0) > std::chrono::milliseconds(400));
  QVERIFY(call_deadline(second, max_message_bytes, max_message_bytes) > std::chrono::seconds(60));
}

void TestPeerPool::bans_end_and_are_bounded() {
  ManualClock clock;
  BanList bans(clock);
  bans.ban(id_of(1), 10 * second, "it lied");
  QCOMPARE(*bans.reason(id_of(1)), std::string("it lied"));
  QVERIFY(!bans.reason(id_of(2)));
  clock.advance(10 * second);
  QVERIFY(!bans.reason(id_of(1)));
  for (std::uint32_t i = 0; i < BanList::max_bans + 100; ++i) {
    NodeId id{};
    store_le(id.data(), i);
    bans.ban(id, second * (i + 1), "x");
  }
  QCOMPARE(bans.all().size(), BanList::max_bans);
  NodeId last{};
  store_le(last.data(), std::uint32_t(BanList::max_bans + 99));
  QVERIFY(bans.reason(last));
  bans.lift(last);
  QVERIFY(!bans.reason(last));
}

NS_TEST(TestPeerPool)
#include "test_peer_pool.moc"
