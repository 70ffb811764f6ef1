// Staying reachable when relays come and go, and joining what comes through them with a port of this
// computer.
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/nat/loopback_pump.h"
#include "core/nat/relay_hold.h"
#include "core/nat/relay_server.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpSocket;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
const Hash256 me{7};
constexpr Duration generous = seconds(20);

// A relay that can be killed and started again at the same port.
class Relay {
 public:
  Relay() {
    endpoint = platform::TcpListener::open({loopback, 0})->local().value();
    start();
  }
  ~Relay() { kill(); }
  void start() {
    auto server = RelayServer::open(endpoint, {}, clock_, entropy_);
    QVERIFY2(server.ok(), server.ok() ? "" : server.error().message.c_str());
    server_ = std::move(*server);
    stop_ = false;
    thread_ = std::thread([this] {
      while (!stop_) {
        (void)server_->step(milliseconds(5));
      }
    });
  }
  void kill() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  Expected<RelayTicket> reserve() {
    if (stop_) return make_error(ErrorCode::Unavailable, "away");
    ++reservations;
    return server_->reserve(me, loopback);
  }
  Endpoint endpoint;
  std::atomic<int> reservations{0};

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  std::unique_ptr<RelayServer> server_;
  std::atomic<bool> stop_{true};
  std::thread thread_;
};

}  // namespace

class TestRelayHold : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_relay_that_is_killed_is_replaced_by_the_next();
  void a_relay_that_comes_back_is_joined_again();
  void a_reservation_is_renewed_before_it_ends();
  void the_pump_joins_calls_with_local_ports();
  void the_pump_is_bounded_and_gives_up();

 private:
  RelayHold hold(std::vector<Relay*> relays, const RelayHoldTimes& times = {}) {
    std::vector<Endpoint> endpoints;
    for (Relay* relay : relays) endpoints.push_back(relay->endpoint);
    return RelayHold(
        endpoints,
        [relays](const Io&, const Endpoint& endpoint) -> Expected<RelayTicket> {
          for (Relay* relay : relays)
            if (relay->endpoint == endpoint) return relay->reserve();
          return make_error(ErrorCode::NotFound, "no such relay");
        },
        times);
  }
  // Whether a call through this relay arrives at the hold within `time`.
  bool reached(RelayHold& hold, const Relay& relay, Duration time) {
    const MonotonicTime until = io_.now() + time;
    std::atomic<bool> done{false};
    std::thread caller([&] {
      while (!done && io_.now() < until) {
        const auto call = call_through_relay(io_, relay.endpoint, me, io_.now() + seconds(2));
        if (call.ok()) return;
        (void)wait_until(io_, {}, io_.now() + milliseconds(50));
      }
    });
    const auto call = hold.next(io_, until);
    done = true;
    caller.join();
    return call.ok() && call->has_value();
  }
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Io io_{clock_, entropy_, {}};
};

void TestRelayHold::a_relay_that_is_killed_is_replaced_by_the_next() {
  Relay one, two;
  RelayHold held = hold({&one, &two});
  QVERIFY(!held.relay());
  QVERIFY(reached(held, one, generous));
  QVERIFY(held.relay() == one.endpoint);
  one.kill();
  QVERIFY(reached(held, two, generous));
  QVERIFY(held.relay() == two.endpoint && held.trouble().empty());
}

void TestRelayHold::a_relay_that_comes_back_is_joined_again() {
  Relay only;
  RelayHold held = hold({&only});
  QVERIFY(reached(held, only, generous));
  only.kill();
  const auto nothing = held.next(io_, io_.now() + milliseconds(300));
  QVERIFY(nothing.ok() && !nothing->has_value());
  QVERIFY(!held.relay() && !held.trouble().empty());
  only.start();
  QVERIFY(reached(held, only, seconds(30)));
}

void TestRelayHold::a_reservation_is_renewed_before_it_ends() {
  Relay only;
  RelayHoldTimes times;
  times.renew = milliseconds(100);
  RelayHold held = hold({&only}, times);
  QVERIFY(held.next(io_, io_.now() + milliseconds(450)).ok());
  QVERIFY(only.reservations >= 2);
  QVERIFY(reached(held, only, generous));
}

void TestRelayHold::the_pump_joins_calls_with_local_ports() {
  // A server and a client of this computer, with a pump on both sides of one "punched" connection.
  auto server = platform::TcpListener::open({loopback, 0}), wire = platform::TcpListener::open({loopback, 0});
  auto here = dial_until(io_, wire->local().value(), {}, io_.now() + generous);
  QVERIFY(here.ok());
  auto there = wire->accept();
  QVERIFY(there.ok() && there->has_value());
  LoopbackPump pump({}, clock_);
  QVERIFY(pump.inbound(std::move((*there)->socket), server->local()->port).ok());
  const auto port = pump.outbound(std::move(*here));
  QVERIFY(port.ok());
  auto client = TcpSocket::dial({loopback, *port});
  QVERIFY(client.ok());
  std::optional<TcpSocket> accepted;
  for (int i = 0; i < 500 && !accepted; ++i) {
    QVERIFY(pump.step(milliseconds(10)).ok());
    if (auto got = server->accept(); got.ok() && got->has_value()) accepted = std::move((*got)->socket);
  }
  QVERIFY(accepted.has_value());
  const std::string words(300'000, 'p');
  std::string got;
  std::size_t sent = 0;
  for (int i = 0; i < 2000 && got.size() < words.size(); ++i) {
    if (sent < words.size()) sent += client->write_some(as_bytes(words).subspan(sent)).value_or(0);
    QVERIFY(pump.step(milliseconds(1)).ok());
    std::array<std::uint8_t, 65536> buffer{};
    const std::size_t count = accepted->read_some(buffer).value_or(0);
    got.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
  }
  QVERIFY(got == words);
  QCOMPARE(pump.bytes(), std::uint64_t{2 * words.size()});  // through both of its joints
  client->close();
  accepted->close();
  for (int i = 0; i < 500 && pump.connections() > 0; ++i) QVERIFY(pump.step(milliseconds(10)).ok());
  QCOMPARE(pump.connections(), std::size_t{0});
}

void TestRelayHold::the_pump_is_bounded_and_gives_up() {
  auto wire = platform::TcpListener::open({loopback, 0});
  PumpLimits limits;
  limits.connections = 2;
  limits.dial = milliseconds(100);
  LoopbackPump pump(limits, clock_);
  for (int i = 0; i < 3; ++i) {
    auto peer = dial_until(io_, wire->local().value(), {}, io_.now() + generous);
    const auto port = pump.outbound(std::move(*peer));
    QCOMPARE(port.ok(), i < 2);
    if (!port.ok()) QCOMPARE(port.error().code, ErrorCode::Exhausted);
  }
  for (int i = 0; i < 500 && pump.connections() > 0; ++i) QVERIFY(pump.step(milliseconds(10)).ok());
  QCOMPARE(pump.connections(), std::size_t{0});  // nobody dialled
}

NS_TEST(TestRelayHold)
#include "test_relay_hold.moc"
