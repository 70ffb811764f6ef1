// The splice relay on the loopback interface: calls through it, its limits, and strangers.
#include <QtTest>
#include <thread>

#include "core/nat/stun_client.h"
#include "tests/support/test_main.h"
#include "tests/unit/nat/relay_fixture.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpListener;
using platform::TcpSocket;
using std::chrono::milliseconds;
using testing::Echo;
using testing::generous;
using testing::loopback;
using testing::Relay;

class TestRelay : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void bytes_pass_both_ways_and_their_end();
  void much_passes_and_all_of_it();
  void an_unknown_node_is_refused();
  void a_wrong_ticket_is_refused();
  void a_new_reservation_replaces_the_old_one();
  void reservations_are_bounded();
  void a_reservation_that_nobody_joins_ends_soon();
  void calls_count_under_the_next_reservation();
  void one_prefix_cannot_take_all_places();
  void a_joined_call_takes_one_place_of_its_prefix();
  void one_group_cannot_take_all_calls_of_a_callee();
  void silent_and_wordy_strangers_are_dropped();
  void a_callee_that_does_not_take_the_call();
  void a_session_ends_at_its_limit_of_bytes();
  void what_passes_is_held_to_the_users_limits();
  void a_limit_gives_each_session_its_turn();
  void a_pause_is_no_idle_time();
  void nothing_passes_when_the_data_is_used_up();
  void a_relay_without_data_takes_nobody();
  void the_port_tells_where_a_caller_is_seen();
  void what_only_begins_like_a_stun_request_is_dropped();

 private:
  Expected<std::string> talk(TcpSocket& socket, const std::string& words) {
    NS_RETURN_IF_ERROR(write_until(io_, socket, as_bytes(words), io_.now() + generous));
    std::string answer(words.size(), '\0');
    NS_RETURN_IF_ERROR(read_all_until(
        io_, socket, MutableByteSpan(reinterpret_cast<std::uint8_t*>(answer.data()), answer.size()),
        io_.now() + generous));
    return answer;
  }
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Io io_{clock_, entropy_, {}};
};

void TestRelay::bytes_pass_both_ways_and_their_end() {
  Relay relay;
  relay.run();
  {
    Echo echo(relay);
    std::vector<TcpSocket> calls;
    for (int i = 0; i < 3; ++i) {
      auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
      QVERIFY2(call.ok(), call.ok() ? "" : call.error().message.c_str());
      calls.push_back(std::move(*call));
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      std::string words(200'000 + i, static_cast<char>('a' + i));
      const auto answer = talk(calls[i], words);
      QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
      QVERIFY(*answer == words);
    }
    calls[0].shut_down_writing();
    std::array<std::uint8_t, 1> end{};
    QCOMPARE(read_until(io_, calls[0], end, io_.now() + generous).error().code, ErrorCode::Unavailable);
  }
  RelayServer& server = relay.pause();
  QCOMPARE(server.counters().sessions, std::uint64_t{3});
  QVERIFY(server.counters().bytes >= 1'200'000);
  for (int i = 0; i < 500 && server.connections() > 0; ++i) (void)server.step(milliseconds(20));
  QCOMPARE(server.connections(), std::size_t{0});  // everybody is gone, and so are their places
}

void TestRelay::much_passes_and_all_of_it() {
  Relay relay;
  relay.run();
  auto callee = RelayCallee::join(io_, relay.endpoint, relay.ticket, io_.now() + generous);
  QVERIFY(callee.ok());
  constexpr std::size_t piece = 1 << 20, pieces = 64;
  std::thread caller([&] {
    auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
    if (!call.ok()) return;
    Bytes bytes(piece);
    for (std::size_t i = 0; i < pieces; ++i) {
      for (std::size_t j = 0; j < piece; j += 4096) bytes[j] = static_cast<std::uint8_t>(i + j / 4096);
      if (!write_until(io_, *call, bytes, io_.now() + generous).ok()) return;
    }
    std::array<std::uint8_t, 1> end{};
    call->shut_down_writing();
    (void)read_until(io_, *call, end, io_.now() + generous);
  });
  auto call = callee->next(io_, io_.now() + generous);
  bool whole = call.ok() && call->has_value();
  Bytes bytes(piece);
  const MonotonicTime start = io_.now();
  for (std::size_t i = 0; whole && i < pieces; ++i) {
    whole = read_all_until(io_, (*call)->socket, bytes, io_.now() + generous).ok();
    for (std::size_t j = 0; whole && j < piece; j += 4096)
      whole = bytes[j] == static_cast<std::uint8_t>(i + j / 4096);
  }
  const double took = to_seconds(io_.now() - start);
  if (call.ok() && call->has_value()) (*call)->socket.close();
  caller.join();
  QVERIFY(whole);
  qInfo("%.0f MB/s through the relay", static_cast<double>(piece * pieces) / 1e6 / took);
}

void TestRelay::an_unknown_node_is_refused() {
  Relay relay;
  relay.run();
  // Reserved, but not joined; and unknown.
  for (const Hash256& who : {relay.callee, Hash256{9}}) {
    const auto call = call_through_relay(io_, relay.endpoint, who, io_.now() + generous);
    QVERIFY(!call.ok());
    QCOMPARE(call.error().code, ErrorCode::NotFound);
  }
  QCOMPARE(relay.pause().counters().unknown_callees, std::uint64_t{2});
}

void TestRelay::a_wrong_ticket_is_refused() {
  Relay relay;
  relay.run();
  RelayTicket wrong = relay.ticket;
  wrong[15] ^= 1;
  const auto joined = RelayCallee::join(io_, relay.endpoint, wrong, io_.now() + generous);
  QVERIFY(!joined.ok());
  QCOMPARE(joined.error().code, ErrorCode::Denied);
  QCOMPARE(relay.pause().counters().bad_tickets, std::uint64_t{1});
}

void TestRelay::a_new_reservation_replaces_the_old_one() {
  Relay relay;
  const RelayTicket old = relay.ticket;
  relay.ticket = relay.idle_server().reserve(relay.callee, loopback).value();
  QCOMPARE(relay.idle_server().reservations(), std::size_t{1});
  relay.run();
  QVERIFY(!RelayCallee::join(io_, relay.endpoint, old, io_.now() + generous).ok());
  QVERIFY(RelayCallee::join(io_, relay.endpoint, relay.ticket, io_.now() + generous).ok());
}

void TestRelay::reservations_are_bounded() {
  RelayLimits limits;
  limits.reservations = 12;
  limits.reservations_per_prefix = 8;
  Relay relay(limits);
  RelayServer& server = relay.idle_server();
  int given = 1, refused = 0;
  for (std::uint8_t i = 10; i < 40; ++i) {
    const auto ticket = server.reserve(Hash256{i}, i < 25 ? loopback : IpAddress::v4(192, 0, 2, i));
    if (ticket.ok()) ++given;
    if (!ticket.ok() && ticket.error().code == ErrorCode::Exhausted) ++refused;
  }
  QCOMPARE(given, 12);  // eight of one prefix, four of the other
  QCOMPARE(refused, 19);
  server.cancel(Hash256{10});
  QVERIFY(server.reserve(Hash256{99}, loopback).ok());
}

void TestRelay::a_reservation_that_nobody_joins_ends_soon() {
  ManualClock clock;
  RelayLimits limits;
  limits.reservations = 1;
  const auto server = RelayServer::make(limits, clock, entropy_);
  QVERIFY(server->reserve(Hash256{1}, IpAddress::v4(11, 1, 1, 1)).ok());
  clock.advance(limits.join_time - milliseconds(1));
  QVERIFY(!server->reserve(Hash256{2}, IpAddress::v4(11, 2, 1, 1)).ok());
  clock.advance(milliseconds(1));
  QVERIFY(server->reserve(Hash256{2}, IpAddress::v4(11, 2, 1, 1)).ok());
}

void TestRelay::calls_count_under_the_next_reservation() {
  RelayLimits limits;
  limits.sessions_per_callee = 2;
  Relay relay(limits);
  relay.run();
  Echo echo(relay);
  std::vector<TcpSocket> calls;
  for (int i = 0; i < 2; ++i) {
    auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
    QVERIFY2(call.ok(), call.ok() ? "" : call.error().message.c_str());
    calls.push_back(std::move(*call));
  }
  relay.ticket = relay.idle_server().reserve(relay.callee, loopback).value();
  const Echo again(relay);
  QVERIFY(talk(calls[0], "still here").ok());
  const auto third = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(!third.ok());
  QCOMPARE(third.error().code, ErrorCode::Busy);
}

void TestRelay::one_prefix_cannot_take_all_places() {
  RelayLimits limits;
  limits.connections_per_prefix = 4;
  Relay relay(limits);
  std::vector<TcpSocket> strangers;
  for (int i = 0; i < 10; ++i) {
    auto socket = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
    QVERIFY(socket.ok());
    strangers.push_back(std::move(*socket));
  }
  RelayServer& server = relay.idle_server();
  for (int i = 0; i < 50 && server.counters().over_limit < 6; ++i)
    QVERIFY(server.step(milliseconds(20)).ok());
  QCOMPARE(server.connections(), std::size_t{4});
  QCOMPARE(server.counters().over_limit, std::uint64_t{6});
  strangers.clear();
  for (int i = 0; i < 50 && server.connections() > 0; ++i) QVERIFY(server.step(milliseconds(20)).ok());
  QCOMPARE(server.connections(), std::size_t{0});
}

// Relay, callee and callers are all of one prefix here.
void TestRelay::a_joined_call_takes_one_place_of_its_prefix() {
  RelayLimits limits;
  limits.connections_per_prefix = 6;
  Relay relay(limits);
  relay.run();
  std::vector<TcpSocket> strangers;
  const auto dial = [&] {
    auto socket = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
    QVERIFY(socket.ok());
    strangers.push_back(std::move(*socket));
  };
  {
    Echo echo(relay);  // one place
    std::vector<TcpSocket> calls;
    for (int i = 0; i < 4; ++i) {  // one each, and another only until the callee has taken the call
      auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
      QVERIFY2(call.ok(), call.ok() ? "" : call.error().message.c_str());
      calls.push_back(std::move(*call));
    }
    for (TcpSocket& call : calls) QVERIFY(talk(call, "still here").ok());
    RelayServer& server = relay.pause();
    QCOMPARE(server.connections(), std::size_t{9});
    for (int i = 0; i < 3; ++i) dial();
    for (int i = 0; i < 500 && server.counters().over_limit < 2; ++i) (void)server.step(milliseconds(20));
    QCOMPARE(server.counters().over_limit, std::uint64_t{2});
    QCOMPARE(server.connections(), std::size_t{10});
    strangers.clear();
    calls.clear();
    relay.run();  // the callee's threads end with their calls
  }
  RelayServer& server = relay.pause();
  for (int i = 0; i < 500 && server.connections() > 0; ++i) (void)server.step(milliseconds(20));
  QCOMPARE(server.connections(), std::size_t{0});
  // No place is lost, and none is given back twice.
  for (int i = 0; i < 7; ++i) dial();
  for (int i = 0; i < 500 && server.counters().over_limit < 3; ++i) (void)server.step(milliseconds(20));
  QCOMPARE(server.connections(), std::size_t{6});
}

void TestRelay::one_group_cannot_take_all_calls_of_a_callee() {
  Relay relay;
  relay.run();
  Echo echo(relay);
  TcpListener listener = std::move(*TcpListener::open({loopback, 0}));
  std::vector<TcpSocket> calls;
  // How the relay answers a call that comes from this address.
  const auto answer_to = [&](const IpAddress& caller) -> std::string {
    auto socket = dial_until(io_, listener.local().value(), {}, io_.now() + generous);
    auto accepted = listener.accept();
    for (int i = 0; i < 200 && accepted.ok() && !accepted->has_value(); ++i) {
      (void)wait_until(io_, {}, io_.now() + milliseconds(5));
      accepted = listener.accept();
    }
    if (!socket.ok() || !accepted.ok() || !accepted->has_value()) return "no connection";
    relay.idle_server().adopt(std::move((*accepted)->socket), {caller, 9000});
    const std::string head = "CONNECT " + to_hex(relay.callee) + ":443 HTTP/1.1\r\n\r\n";
    std::array<std::uint8_t, 12> status{};
    if (!write_until(io_, *socket, as_bytes(head), io_.now() + generous).ok() ||
        !read_all_until(io_, *socket, status, io_.now() + generous).ok())
      return "no answer";
    calls.push_back(std::move(*socket));
    return std::string(status.begin(), status.end());
  };
  const std::string connected = "HTTP/1.1 200", refused = "HTTP/1.1 503";
  for (std::uint8_t i = 0; i < 32; ++i)
    QCOMPARE(answer_to(IpAddress::v4(93, 184, 216, i)), i < 8 ? connected : refused);
  QCOMPARE(answer_to(IpAddress::v4(93, 184, 217, 1)), connected);
  // Each private address is a group of its own.
  for (std::uint8_t i = 1; i < 10; ++i) QCOMPARE(answer_to(IpAddress::v4(192, 168, 1, i)), connected);
  calls.clear();
}

void TestRelay::silent_and_wordy_strangers_are_dropped() {
  RelayLimits limits;
  limits.head_time = milliseconds(200);
  Relay relay(limits);
  relay.run();
  auto silent = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
  auto wordy = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
  auto garbage = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
  const std::string endless = "CONNECT a:1 HTTP/1.1\r\nA: " + std::string(20'000, 'x');
  (void)write_until(io_, *wordy, as_bytes(endless), io_.now() + generous);
  (void)write_until(io_, *garbage, as_bytes(std::string("\x16\x03\x01\x02\x00")), io_.now() + generous);
  for (TcpSocket* socket : {&*silent, &*wordy, &*garbage}) {
    std::array<std::uint8_t, 512> buffer{};
    Expected<std::size_t> count = std::size_t{0};
    while (count.ok()) count = read_until(io_, *socket, buffer, io_.now() + generous);
    QVERIFY(count.error().code != ErrorCode::Timeout);
  }
  const RelayCounters counters = relay.pause().counters();
  QCOMPARE(counters.slow_heads, std::uint64_t{1});
  QCOMPARE(counters.bad_heads, std::uint64_t{2});
}

void TestRelay::a_callee_that_does_not_take_the_call() {
  RelayLimits limits;
  limits.accept_time = milliseconds(200);
  Relay relay(limits);
  relay.run();
  const auto idle = RelayCallee::join(io_, relay.endpoint, relay.ticket, io_.now() + generous);
  QVERIFY(idle.ok());
  const auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(!call.ok());
  QCOMPARE(call.error().code, ErrorCode::Timeout);
  QCOMPARE(relay.pause().counters().unanswered, std::uint64_t{1});
}

void TestRelay::a_session_ends_at_its_limit_of_bytes() {
  RelayLimits limits;
  limits.session.bytes = 100'000;
  Relay relay(limits);
  relay.run();
  Echo echo(relay);
  auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(call.ok());
  QVERIFY(talk(*call, std::string(10'000, 'x')).ok());
  const auto more = talk(*call, std::string(1'000'000, 'x'));
  QVERIFY(!more.ok() && more.error().code != ErrorCode::Timeout);
}

void TestRelay::what_passes_is_held_to_the_users_limits() {
  Relay relay;
  constexpr double rate = 2e6;  // bytes a second
  std::uint64_t counted = 0;
  relay.idle_server().set_pace([&](std::uint64_t bytes) -> Expected<Duration> {
    counted += bytes;
    return Duration(static_cast<std::int64_t>(1e9 * double(bytes) / rate));
  });
  relay.run();
  {
    Echo echo(relay);
    auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
    QVERIFY(call.ok());
    const MonotonicTime began = io_.now();
    constexpr std::size_t size = 500'000;
    QVERIFY(talk(*call, std::string(size, 'x')).ok());
    const double took = to_seconds(io_.now() - began);
    QVERIFY2(took > 0.8 * 2 * size / rate, qPrintable(QString::number(took)));  // there and back
  }
  relay.pause();
  QVERIFY(counted >= 1'000'000);
}

void TestRelay::nothing_passes_when_the_data_is_used_up() {
  Relay relay;
  std::uint64_t left = 50'000;
  relay.idle_server().set_pace([&](std::uint64_t bytes) -> Expected<Duration> {
    if (bytes > left) return make_error(ErrorCode::Exhausted, "used up");
    left -= bytes;
    return Duration(0);
  });
  relay.run();
  Echo echo(relay);
  auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(call.ok());
  QVERIFY(talk(*call, std::string(10'000, 'x')).ok());
  const auto more = talk(*call, std::string(1'000'000, 'x'));
  QVERIFY(!more.ok() && more.error().code != ErrorCode::Timeout);
}

void TestRelay::a_relay_without_data_takes_nobody() {
  Relay relay;
  RelayServer& server = relay.idle_server();
  server.set_pace(
      [](std::uint64_t) -> Expected<Duration> { return make_error(ErrorCode::Exhausted, "used up"); });
  relay.run();
  Echo echo(relay);
  auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(call.ok());
  QVERIFY(!talk(*call, "hello").ok());
  // The callee has lost its place, so it looks for another relay.
  QCOMPARE(server.joined(), std::size_t{0});
  QVERIFY(server.used_up());
  const auto reserved = server.reserve(relay.callee, loopback);
  QVERIFY(!reserved.ok());
  QCOMPARE(reserved.error().code, ErrorCode::Exhausted);
  const auto joined = RelayCallee::join(io_, relay.endpoint, relay.ticket, io_.now() + generous);
  QVERIFY(!joined.ok());
  QCOMPARE(joined.error().code, ErrorCode::Busy);
  const auto late = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(!late.ok());
  QCOMPARE(late.error().code, ErrorCode::Busy);
  QVERIFY2(late.error().message.find("no data left") != std::string::npos, late.error().message.c_str());
  server.set_pace({});
  QVERIFY(!server.used_up());
  QVERIFY(server.reserve(relay.callee, loopback).ok());
}

void TestRelay::a_limit_gives_each_session_its_turn() {
  std::vector<std::uint64_t> passed;
  Relay relay;
  relay.idle_server().set_pace([&](std::uint64_t bytes) -> Expected<Duration> {
    passed.push_back(bytes);
    return Duration(milliseconds(50));
  });
  relay.run();
  Echo echo(relay);
  std::vector<TcpSocket> calls;
  for (int i = 0; i < 2; ++i) {
    auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
    QVERIFY2(call.ok(), call.ok() ? "" : call.error().message.c_str());
    calls.push_back(std::move(*call));
  }
  RelayServer& server = relay.pause();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string words(1000 * (i + 1), 'x');
    QVERIFY(write_until(io_, calls[i], as_bytes(words), io_.now() + generous).ok());
  }
  for (int i = 0; i < 500 && passed.empty(); ++i) QVERIFY(server.step(milliseconds(20)).ok());
  QCOMPARE(passed.size(), std::size_t{1});  // the other waits for the pause to end
  for (int i = 0; i < 500 && passed.size() < 2; ++i) QVERIFY(server.step(milliseconds(20)).ok());
  QCOMPARE(passed.size(), std::size_t{2});
  QCOMPARE(passed[0] + passed[1], std::uint64_t{3000});
}

void TestRelay::a_pause_is_no_idle_time() {
  bool first = true;
  RelayLimits limits;
  limits.session.idle = milliseconds(400);
  Relay relay(limits);
  relay.idle_server().set_pace([&first](std::uint64_t) -> Expected<Duration> {
    return Duration(std::exchange(first, false) ? milliseconds(600) : milliseconds(0));
  });
  relay.run();
  Echo echo(relay);
  auto call = call_through_relay(io_, relay.endpoint, relay.callee, io_.now() + generous);
  QVERIFY(call.ok());
  const auto answer = talk(*call, "still here");
  QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
}

void TestRelay::the_port_tells_where_a_caller_is_seen() {
  Relay relay;
  relay.run();
  const auto hole =
      outside_endpoint_tcp(io_, relay.endpoint, {Endpoint{loopback, 0}, true}, io_.now() + generous);
  QVERIFY2(hole.ok(), hole.ok() ? "" : hole.error().message.c_str());
  QCOMPARE(hole->outside, hole->connection.local().value());
  // The connection stays, and keeps the mapping, until it says anything else.
  RelayServer& server = relay.pause();
  QCOMPARE(server.counters().bindings, std::uint64_t{1});
  QCOMPARE(server.connections(), std::size_t{1});
}

void TestRelay::what_only_begins_like_a_stun_request_is_dropped() {
  RelayLimits limits;
  limits.echo_time = milliseconds(200);
  Relay relay(limits);
  relay.run();
  Bytes wrong(40, 0);  // no magic cookie
  auto garbage = dial_until(io_, relay.endpoint, {}, io_.now() + generous);
  (void)write_until(io_, *garbage, wrong, io_.now() + generous);
  auto hole = outside_endpoint_tcp(io_, relay.endpoint, {}, io_.now() + generous);
  QVERIFY(hole.ok());
  for (TcpSocket* socket : {&*garbage, &hole->connection}) {  // the second after its time
    std::array<std::uint8_t, 16> buffer{};
    QCOMPARE(read_until(io_, *socket, buffer, io_.now() + generous).error().code, ErrorCode::Unavailable);
  }
  QCOMPARE(relay.pause().counters().bad_heads, std::uint64_t{1});
}

NS_TEST(TestRelay)
#include "test_relay.moc"
