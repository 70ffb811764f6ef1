// Staying reachable at a TURN server of one's own, a real coturn on the loopback interface: who is let in,
// what is said when it refuses or is of no use, and that it is found again; and the same as a node has it,
// with its listener behind.
#include <QtTest>
#include <future>
#include <thread>

#include "core/nat/tunnels.h"
#include "core/nat/turn_hold.h"
#include "tests/support/loopback_coturn.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using Coturn = neuroshard::testing::LoopbackCoturn;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpListener;
using platform::TcpSocket;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1), elsewhere = IpAddress::v4(11, 22, 33, 44);
// The dialling side, from another address than the hold's own, at which that tries its place.
const IpAddress stranger = IpAddress::v4(127, 0, 0, 2);
constexpr Duration generous = seconds(20);

SystemClock the_clock;
crypto::SystemEntropy the_entropy;
const Io io{the_clock, the_entropy, {}};

}  // namespace

class TestTurnHold : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (const QString why_not = Coturn::missing(); !why_not.isEmpty()) QSKIP(qPrintable(why_not));
  }
  void who_is_named_is_let_in_and_nobody_else();
  void a_wrong_password_is_told_and_tried_again();
  void a_server_that_comes_back_is_found_again();
  void an_address_that_nobody_reaches_is_not_told();
  void a_server_for_everybody_lets_strangers_in();
  void a_node_is_called_through_its_server();

 private:
  static TurnHoldTimes quick() {
    TurnHoldTimes times;
    times.first_retry = milliseconds(50);
    times.last_retry = milliseconds(200);
    return times;
  }
  static TurnHold hold(const Coturn& server, const std::string& password = "secret", bool one_lan = true) {
    return TurnHold(
        {"nsd", password}, [at = server.endpoint](const Io&) { return Expected<Endpoint>(at); }, one_lan,
        quick());
  }
  // Until it has a place, or not for `time`.
  static bool reached(TurnHold& hold, Duration time = generous) {
    const MonotonicTime until = io.now() + time;
    while (!hold.relayed() && io.now() < until)
      if (!hold.next(io, io.now() + milliseconds(20)).ok()) return false;
    return hold.relayed().has_value();
  }
  // Whether somebody who dials gets through within `time`: the bytes of one side arrive at the other.
  static bool gets_through(TurnHold& hold, Duration time) {
    if (!hold.relayed()) return false;
    auto caller = dial_until(io, *hold.relayed(), {Endpoint{stranger, 0}, false}, io.now() + generous);
    if (!caller.ok()) return false;
    auto call = hold.next(io, io.now() + time);
    if (!call.ok() || !call->has_value()) return false;
    std::array<std::uint8_t, 5> heard{};
    return write_until(io, *caller, as_bytes(std::string_view("hello")), io.now() + generous).ok() &&
           read_all_until(io, (*call)->socket, heard, io.now() + generous).ok() && heard[4] == 'o';
  }
};

void TestTurnHold::who_is_named_is_let_in_and_nobody_else() {
  Coturn server;
  QVERIFY(server.start());
  TurnHold held = hold(server);
  QVERIFY(!held.relayed() && held.trouble() == "it was not asked yet");
  QCOMPARE(held.let_in(io, stranger).error().code, ErrorCode::Unavailable);
  QVERIFY2(reached(held), held.trouble().c_str());
  QVERIFY(held.relayed()->ip == loopback && held.trouble().empty());
  QVERIFY(!gets_through(held, milliseconds(300)));
  // By its record.
  held.set_known({elsewhere, stranger, elsewhere});
  QVERIFY(held.next(io, io.now()).ok());
  QVERIFY(gets_through(held, generous));
  // By asking; then it stays in, whoever is known.
  QVERIFY(held.let_in(io, stranger).ok());
  held.set_known({elsewhere});
  QVERIFY(gets_through(held, generous));
  QCOMPARE(held.let_in(io, platform::parse_ip("2001:db8::1").value()).error().code, ErrorCode::Denied);
}

void TestTurnHold::a_wrong_password_is_told_and_tried_again() {
  Coturn server;
  QVERIFY(server.start());
  TurnHold held = hold(server, "guessed");
  QVERIFY(!reached(held, milliseconds(600)));
  QVERIFY2(held.trouble().find("does not accept this name and password") != std::string::npos,
           held.trouble().c_str());
  QVERIFY(held.trouble().find("guessed") == std::string::npos);
  int asked = 0;
  TurnHold patient(
      {"nsd", "guessed"},
      [&](const Io&) {
        ++asked;
        return Expected<Endpoint>(server.endpoint);
      },
      true, quick());
  for (const MonotonicTime until = io.now() + generous; asked < 3 && io.now() < until;)
    QVERIFY(patient.next(io, io.now() + milliseconds(20)).ok());
  QCOMPARE(asked, 3);
}

void TestTurnHold::a_server_that_comes_back_is_found_again() {
  Coturn server;
  TurnHold held = hold(server);
  QVERIFY(held.next(io, io.now() + milliseconds(100)).ok());
  QVERIFY2(!held.relayed() && held.trouble() != "it was not asked yet", held.trouble().c_str());
  QVERIFY(server.start());
  QVERIFY2(reached(held), held.trouble().c_str());
  QVERIFY(held.let_in(io, stranger).ok());
  server.kill();
  QVERIFY(held.next(io, io.now() + milliseconds(500)).ok());
  QVERIFY(!held.relayed() && !held.trouble().empty());
  QVERIFY(server.start());
  QVERIFY2(reached(held), held.trouble().c_str());
  QVERIFY(held.next(io, io.now() + milliseconds(100)).ok());
  QVERIFY(gets_through(held, generous));  // who asked before is still in
  // Somebody else's executor: nothing is waited for when it is to stop.
  CancelSource cancel;
  cancel.cancel();
  QCOMPARE(held.next({the_clock, the_entropy, cancel.token()}, io.now() + generous).error().code,
           ErrorCode::Cancelled);
}

void TestTurnHold::an_address_that_nobody_reaches_is_not_told() {
  // As behind a firewall that is closed for the relayed ports: nothing listens at that address.
  Coturn closed({"--external-ip=127.0.0.77/127.0.0.1"});
  QVERIFY(closed.start());
  TurnHold held = hold(closed);
  QVERIFY(!reached(held, milliseconds(600)));
  QVERIFY2(held.trouble().find("127.0.0.77:") != std::string::npos &&
               held.trouble().find("min-port") != std::string::npos,
           held.trouble().c_str());
  // As behind a NAT of which it knows nothing.
  Coturn inside;
  QVERIFY(inside.start());
  TurnHold strict = hold(inside, "secret", /*one_lan=*/false);
  QVERIFY(!reached(strict, milliseconds(600)));
  QVERIFY2(strict.trouble().find("external-ip") != std::string::npos, strict.trouble().c_str());
}

// The guide's statement about coturn's server-relay.
void TestTurnHold::a_server_for_everybody_lets_strangers_in() {
  Coturn server({"--server-relay"});
  QVERIFY(server.start());
  TurnHold held = hold(server);
  QVERIFY2(reached(held), held.trouble().c_str());
  QVERIFY(gets_through(held, generous));
}

void TestTurnHold::a_node_is_called_through_its_server() {
  Coturn server;
  QVERIFY(server.start());
  const auto executor = make_thread_executor("node", 256);
  auto listener = TcpListener::open({loopback, 0});
  TunnelOptions options;
  options.own = listener->local().value();
  options.turn = TurnAccount{"nsd", "secret"};
  options.turn_times = quick();
  options.one_lan = true;
  auto tunnels = Tunnels::start(the_clock, the_entropy, *executor, options).value();
  std::promise<Endpoint> turned;
  std::promise<ErrorCode> refused;
  std::promise<bool> let_in;
  QVERIFY(executor->post([&] {
    Tunnels::Events events;
    events.find_turn = [&](const Tunnels::Found& found) { found(server.endpoint); };
    events.turned = [&, once = std::make_shared<bool>(false)](std::optional<Endpoint> at,
                                                              const std::string&) {
      if (at && !std::exchange(*once, true)) turned.set_value(*at);
    };
    tunnels->set_events(std::move(events));
    tunnels->let_in(stranger, [&](const Expected<void>& done) { refused.set_value(done.error().code); });
    tunnels->hold_turn(true, {});
  }));
  QCOMPARE(refused.get_future().get(), ErrorCode::Unavailable);
  auto place = turned.get_future();
  QCOMPARE(place.wait_for(generous), std::future_status::ready);
  const Endpoint at = place.get();
  QVERIFY(executor->post(
      [&] { tunnels->let_in(stranger, [&](const Expected<void>& done) { let_in.set_value(done.ok()); }); }));
  QVERIFY(let_in.get_future().get());
  auto caller = dial_until(io, at, {Endpoint{stranger, 0}, false}, io.now() + generous);
  QVERIFY(caller.ok());
  QVERIFY(write_until(io, *caller, as_bytes(std::string_view("hello")), io.now() + generous).ok());
  std::optional<platform::TcpListener::Accepted> accepted;
  for (const MonotonicTime until = io.now() + generous; !accepted && io.now() < until;) {
    accepted = listener->accept().value();
    (void)wait_until(io, {}, io.now() + milliseconds(5));
  }
  QVERIFY(accepted.has_value());
  std::array<std::uint8_t, 5> heard{};
  QVERIFY(read_all_until(io, accepted->socket, heard, io.now() + generous).ok());
  QCOMPARE(heard[0], std::uint8_t{'h'});
  // Not needed any more: the place is given back.
  QVERIFY(executor->post([&] { tunnels->hold_turn(false, {}); }));
  QTRY_VERIFY_WITH_TIMEOUT(!dial_until(io, at, {}, io.now() + seconds(1)).ok(), 20'000);
  tunnels.reset();
}

NS_TEST(TestTurnHold)
#include "test_turn_hold.moc"
