// Who asks to be let in at a node's TURN server: what is refused, with its reason, and what that costs.
#include <QtTest>

#include "core/dht/messages.h"
#include "core/swarm/turn_door.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using platform::Endpoint;
using platform::IpAddress;

namespace {

const IpAddress public_ip = IpAddress::v4(11, 22, 33, 44);
using neuroshard::test::second;

struct Door {
  explicit Door(bool one_lan = false)
      : door(clock, one_lan, &conduct,
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
    door.answer(caller(who), request, has_place, [&](Expected<Bytes> said) { answer = std::move(said); });
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
  TurnDoor door;
};

}  // namespace

class TestTurnDoor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void who_asks_is_let_in_from_there();
  void without_a_place_nobody_is_let_in();
  void what_can_not_be_read_is_a_fault();
  void addresses_of_nobody_are_refused_data();
  void addresses_of_nobody_are_refused();
  void who_asks_too_often_has_to_wait();
  void many_at_once_have_to_wait();
  void what_the_server_says_is_passed_on();
};

void TestTurnDoor::who_asks_is_let_in_from_there() {
  Door door;
  QCOMPARE(door.ask(1), std::string());
  QCOMPARE(door.ask(2, platform::parse_ip("2a00:1450::5").value()), std::string());
  QCOMPARE(door.let_in.size(), std::size_t{2});
  QVERIFY(door.let_in[0] == public_ip);
}

void TestTurnDoor::without_a_place_nobody_is_let_in() {
  Door door;
  QCOMPARE(door.ask(1, public_ip, /*has_place=*/false),
           std::string("this node has no place at a TURN server"));
  QCOMPARE(door.code, ErrorCode::Unsupported);
  QVERIFY(door.let_in.empty());
  // Nor does it count as a try: it may have one soon.
  for (int i = 0; i < 10; ++i) static_cast<void>(door.ask(1, public_ip, false));
  QCOMPARE(door.ask(1), std::string());
}

void TestTurnDoor::what_can_not_be_read_is_a_fault() {
  Door door;
  const Bytes whole = dht::encode_endpoint({public_ip, 5000});
  for (const Bytes& request : {Bytes(), Bytes(whole.begin(), whole.end() - 1), Bytes(1000, 1)}) {
    QVERIFY(door.ask(1, request).find("another length") != std::string::npos);
    QCOMPARE(door.code, ErrorCode::Corrupt);
  }
  QVERIFY(door.let_in.empty());
  QCOMPARE(door.conduct.faults(net::Fault::Malformed), std::uint64_t{3});
  while (!door.bans.reason(Door::caller(1).id)) static_cast<void>(door.ask(1, Bytes()));
  QVERIFY(door.bans.reason(Door::caller(1).id)->find("messages that can't be read") != std::string::npos);
}

void TestTurnDoor::addresses_of_nobody_are_refused_data() {
  QTest::addColumn<QString>("address");
  for (const char* address : {"127.0.0.1", "10.1.2.3", "192.168.1.10", "169.254.7.7", "0.0.0.0", "224.0.0.1",
                              "255.255.255.255", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1"})
    QTest::newRow(address) << QString(address);
}

// The server would be asked to pass on what comes from its own network.
void TestTurnDoor::addresses_of_nobody_are_refused() {
  QFETCH(QString, address);
  const IpAddress ip = platform::parse_ip(address.toStdString()).value();
  Door door;
  QCOMPARE(door.ask(1, ip), std::string("only addresses of the internet are let in"));
  QCOMPARE(door.code, ErrorCode::Denied);
  QVERIFY(door.let_in.empty());
  Door at_home(/*one_lan=*/true);
  QCOMPARE(at_home.ask(1, ip), std::string());
}

void TestTurnDoor::who_asks_too_often_has_to_wait() {
  Door door;
  for (int i = 0; i < 3; ++i) QCOMPARE(door.ask(1), std::string());
  QCOMPARE(door.ask(1), std::string("asked too often; wait ten seconds"));
  QCOMPARE(door.code, ErrorCode::Exhausted);
  QCOMPARE(door.ask(2), std::string());  // of the same relay, and not to blame
  door.clock.advance(10 * second);       // as it was told
  QCOMPARE(door.ask(1), std::string());
  QCOMPARE(door.let_in.size(), std::size_t{5});
  // Who goes on and on is banned in the end, and costs the server nothing.
  int asked = 0;
  while (!door.bans.reason(Door::caller(1).id) && ++asked < 1000) static_cast<void>(door.ask(1));
  QVERIFY(asked < 1000);
  QCOMPARE(door.let_in.size(), std::size_t{5});
  QVERIFY(!door.bans.reason(Door::caller(2).id));
}

void TestTurnDoor::many_at_once_have_to_wait() {
  Door door;
  int in = 0;
  for (std::uint8_t who = 1; who <= 40; ++who) {
    const std::string why = door.ask(who);
    in += why.empty();
    if (why.empty()) continue;
    QCOMPARE(why, std::string("too many ask to be let in; try again in a moment"));
    QCOMPARE(door.code, ErrorCode::Exhausted);
  }
  QCOMPARE(in, 16);
  QCOMPARE(door.conduct.faults(net::Fault::Flood), std::uint64_t{0});  // nobody's fault
  door.clock.advance(second);
  QCOMPARE(door.ask(41), std::string());
  QCOMPARE(door.ask(42), std::string());
  QVERIFY(!door.ask(43).empty());
}

void TestTurnDoor::what_the_server_says_is_passed_on() {
  Door door;
  door.server_says = make_error(ErrorCode::Denied, "the TURN server's rules forbid this address");
  QCOMPARE(door.ask(1), std::string("the TURN server's rules forbid this address"));
  QCOMPARE(door.code, ErrorCode::Denied);
  door.server_says = make_error(ErrorCode::Unavailable, "the TURN server does not answer");
  QCOMPARE(door.ask(1), std::string("the TURN server does not answer"));
  QCOMPARE(door.code, ErrorCode::Unavailable);
}

NS_TEST(TestTurnDoor)
#include "test_turn_door.moc"
