// Which requests a node's place at a TURN server permits, the reasons of its refusals, and the faults.
#include <QtTest>

#include "core/dht/messages.h"
#include "core/swarm/reachability.h"
#include "core/swarm/turn_ingress.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using platform::Endpoint;
using platform::IpAddress;

namespace {

const IpAddress public_ip = IpAddress::v4(11, 22, 33, 44);
constexpr Duration second = std::chrono::seconds(1);

struct Ingress {
  explicit Ingress(bool one_lan = false)
      : ingress(clock, one_lan, 1,
                [this](const IpAddress& peer, const std::function<void(Expected<void>)>& done) {
                  let_in.push_back(peer);
                  done(server_says);
                }) {}
  // Everybody comes through the same relay.
  static net::Caller caller(std::uint8_t number) {
    net::Caller from;
    from.id.fill(number);
    from.endpoint = {IpAddress::v4(11, 1, 1, 1), 9000};
    return from;
  }
  // "": let in; else the reason.
  std::string ask(std::uint8_t who, const Bytes& request, bool has_place = true) {
    std::optional<Expected<Bytes>> answer;
    ingress.answer(caller(who), request, has_place, [&](net::Answer said) {
      if (said.fault) conduct.fault(caller(who), *said.fault);
      answer = std::move(said.with);
    });
    if (!answer) return "no answer";
    code = answer->ok() ? ErrorCode::Internal : answer->error().code;
    return answer->ok() ? "" : answer->error().message;
  }
  std::string ask(std::uint8_t who, const IpAddress& address = public_ip, bool has_place = true) {
    return ask(who, dht::encode_endpoint({address, 5000}), has_place);
  }

  ManualClock clock;
  net::BanList bans{clock};
  net::Conduct conduct{bans, clock, false};
  Expected<void> server_says;
  std::vector<IpAddress> let_in;
  ErrorCode code = ErrorCode::Internal;
  TurnIngress ingress;
};

}  // namespace

class TestTurnIngress : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_server_is_tried_at_all_addresses_of_its_name();
  void who_asks_is_let_in_from_there();
  void without_a_place_nobody_is_let_in();
  void what_can_not_be_read_is_a_fault();
  void addresses_of_nobody_are_refused_data();
  void addresses_of_nobody_are_refused();
  void who_asks_too_often_has_to_wait();
  void many_at_once_have_to_wait();
  void what_the_server_says_is_passed_on();
};

void TestTurnIngress::who_asks_is_let_in_from_there() {
  Ingress turn;
  QCOMPARE(turn.ask(1), std::string());
  QCOMPARE(turn.ask(2, platform::parse_ip("2a00:1450::5").value()), std::string());
  QCOMPARE(turn.let_in.size(), std::size_t{2});
  QVERIFY(turn.let_in[0] == public_ip);
}

void TestTurnIngress::without_a_place_nobody_is_let_in() {
  Ingress turn;
  QCOMPARE(turn.ask(1, public_ip, /*has_place=*/false),
           std::string("this node has no place at a TURN server"));
  QCOMPARE(turn.code, ErrorCode::Unsupported);
  QVERIFY(turn.let_in.empty());
  // Nor does it count as a try: it may have one soon.
  for (int i = 0; i < 10; ++i) static_cast<void>(turn.ask(1, public_ip, false));
  QCOMPARE(turn.ask(1), std::string());
}

void TestTurnIngress::what_can_not_be_read_is_a_fault() {
  Ingress turn;
  const Bytes whole = dht::encode_endpoint({public_ip, 5000});
  for (const Bytes& request : {Bytes(), Bytes(whole.begin(), whole.end() - 1), Bytes(1000, 1)}) {
    QVERIFY(turn.ask(1, request).find("another length") != std::string::npos);
    QCOMPARE(turn.code, ErrorCode::Corrupt);
  }
  QVERIFY(turn.let_in.empty());
  QCOMPARE(turn.conduct.faults(net::Fault::Malformed), std::uint64_t{3});
  while (!turn.bans.reason(Ingress::caller(1).id)) static_cast<void>(turn.ask(1, Bytes()));
  QVERIFY(turn.bans.reason(Ingress::caller(1).id)->find("messages that can't be read") != std::string::npos);
}

void TestTurnIngress::addresses_of_nobody_are_refused_data() {
  QTest::addColumn<QString>("address");
  for (const char* address : {"127.0.0.1", "10.1.2.3", "192.168.1.10", "169.254.7.7", "0.0.0.0", "224.0.0.1",
                              "255.255.255.255", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1"})
    QTest::newRow(address) << QString(address);
}

// The server would be asked to pass on what comes from its own network.
void TestTurnIngress::addresses_of_nobody_are_refused() {
  QFETCH(QString, address);
  const IpAddress ip = platform::parse_ip(address.toStdString()).value();
  Ingress turn;
  QCOMPARE(turn.ask(1, ip), std::string("only public addresses are permitted"));
  QCOMPARE(turn.code, ErrorCode::Denied);
  QVERIFY(turn.let_in.empty());
  Ingress at_home(/*one_lan=*/true);
  QCOMPARE(at_home.ask(1, ip), std::string());
}

void TestTurnIngress::who_asks_too_often_has_to_wait() {
  Ingress turn;
  for (int i = 0; i < 3; ++i) QCOMPARE(turn.ask(1), std::string());
  QCOMPARE(turn.ask(1), std::string("asked too often; wait ten seconds"));
  QCOMPARE(turn.code, ErrorCode::Exhausted);
  QCOMPARE(turn.ask(2), std::string());  // of the same relay, and not to blame
  turn.clock.advance(10 * second);       // as it was announced
  QCOMPARE(turn.ask(1), std::string());
  QCOMPARE(turn.let_in.size(), std::size_t{5});
  // A peer that keeps asking is banned in the end, and costs the server nothing.
  int asked = 0;
  while (!turn.bans.reason(Ingress::caller(1).id) && ++asked < 1000) static_cast<void>(turn.ask(1));
  QVERIFY(asked < 1000);
  QCOMPARE(turn.let_in.size(), std::size_t{5});
  QVERIFY(!turn.bans.reason(Ingress::caller(2).id));
}

void TestTurnIngress::many_at_once_have_to_wait() {
  Ingress turn;
  int in = 0;
  for (std::uint8_t who = 1; who <= 40; ++who) {
    const std::string why = turn.ask(who);
    in += why.empty();
    if (why.empty()) continue;
    QCOMPARE(why, std::string("too many requests for permissions; try again in a moment"));
    QCOMPARE(turn.code, ErrorCode::Exhausted);
  }
  QCOMPARE(in, 16);
  QCOMPARE(turn.conduct.faults(net::Fault::Flood), std::uint64_t{0});  // nobody's fault
  turn.clock.advance(second);
  QCOMPARE(turn.ask(41), std::string());
  QCOMPARE(turn.ask(42), std::string());
  QVERIFY(!turn.ask(43).empty());
}

void TestTurnIngress::what_the_server_says_is_passed_on() {
  Ingress turn;
  turn.server_says = make_error(ErrorCode::Denied, "the TURN server's rules forbid this address");
  QCOMPARE(turn.ask(1), std::string("the TURN server's rules forbid this address"));
  QCOMPARE(turn.code, ErrorCode::Denied);
  turn.server_says = make_error(ErrorCode::Unavailable, "the TURN server does not answer");
  QCOMPARE(turn.ask(1), std::string("the TURN server does not answer"));
  QCOMPARE(turn.code, ErrorCode::Unavailable);
}

void TestTurnIngress::a_server_is_tried_at_all_addresses_of_its_name() {
  const Endpoint six{platform::parse_ip("2600::7").value(), 3478}, four{public_ip, 3478},
      other{IpAddress::v4(11, 22, 33, 45), 3478};
  const std::vector<Endpoint> both{six, four, other};
  QVERIFY(turn_server_at(both, 0) == four);
  QVERIFY(turn_server_at(both, 1) == other);
  QVERIFY(turn_server_at(both, 2) == six);  // of a computer without IPv4
  QVERIFY(turn_server_at(both, 3) == four);
  QVERIFY(turn_server_at({six}, 5) == six);
}

NS_TEST(TestTurnIngress)
#include "test_turn_ingress.moc"
