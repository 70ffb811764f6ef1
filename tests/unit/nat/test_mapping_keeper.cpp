// NAT-PMP messages and the keeper of a mapping, with a router and a clock of the test.
#include <QtTest>

#include "core/nat/mapping_keeper.h"
#include "core/nat/nat_pmp_message.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Kind = MappingEvent::Kind;

class Router final : public PortMapper {
 public:
  std::string_view name() const override { return "test"; }
  Expected<PortMapping> map(const Io& io, std::uint16_t inside, std::uint16_t wanted,
                            seconds lease) override {
    if (away) return make_error(why, "the router does not answer");
    mapped_at.push_back(io.now());
    holds = true;
    mapping = {inside, wanted, permanent ? seconds(0) : lease};
    return mapping;
  }
  Expected<MappingState> check(const Io&, const PortMapping&) override {
    if (away) return make_error(why, "the router does not answer");
    return MappingState{address, tells && !holds};
  }
  Expected<void> unmap(const Io&, const PortMapping& which) override {
    holds = holds && which.outside_port != mapping.outside_port;
    return {};
  }
  bool away = false, holds = false;
  bool permanent = false;              // it knows no leases
  bool tells = true;                   // it can answer whether it has a mapping
  ErrorCode why = ErrorCode::Timeout;  // while it is away
  IpAddress address = IpAddress::v4(192, 0, 2, 1);
  PortMapping mapping;
  std::vector<MonotonicTime> mapped_at;
};

struct Home {
  ManualClock clock;
  crypto::SystemEntropy entropy;
  Io io{clock, entropy, {}};
  Router router;
  MappingKeeper keeper{router, 9000, 9000, clock.monotonic_now()};

  std::vector<MappingEvent> pass(Duration time) {
    std::vector<MappingEvent> events;
    for (const MonotonicTime end = clock.monotonic_now() + time; clock.monotonic_now() < end;) {
      for (MappingEvent& event : keeper.step(io)) events.push_back(std::move(event));
      clock.advance(seconds(1));
    }
    return events;
  }
};

}  // namespace

class TestMappingKeeper : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_lease_is_renewed_at_half();
  void a_restarted_router_gets_the_mapping_again();
  void a_changed_address_is_told();
  void a_router_that_can_not_tell_of_its_restart_gets_the_mapping_again();
  void a_router_that_is_away_is_asked_less_and_less_often();
  void two_missing_answers_are_no_loss();
  void a_node_that_can_not_ask_keeps_the_mapping_for_its_lease();
  void the_mapping_is_removed_at_the_end();
  void messages_of_nat_pmp();
  void the_epoch_tells_a_restart_and_a_sleep();
};

void TestMappingKeeper::a_lease_is_renewed_at_half() {
  Home home;
  const auto events = home.pass(minutes(61));
  QCOMPARE(events.size(), std::size_t{1});
  QCOMPARE(static_cast<int>(events[0].kind), static_cast<int>(Kind::Mapped));
  QCOMPARE(to_text(events[0].outside), std::string("192.0.2.1:9000"));
  QCOMPARE(home.router.mapped_at.size(), std::size_t{3});
  QVERIFY(home.router.mapped_at[1] - home.router.mapped_at[0] == Duration(minutes(30)));
  QVERIFY(home.router.mapped_at[2] - home.router.mapped_at[1] == Duration(minutes(30)));
}

void TestMappingKeeper::a_restarted_router_gets_the_mapping_again() {
  Home home;
  home.pass(minutes(5));
  home.router.holds = false;
  const auto events = home.pass(minutes(2));
  QCOMPARE(events.size(), std::size_t{2});
  QCOMPARE(static_cast<int>(events[0].kind), static_cast<int>(Kind::Lost));
  QCOMPARE(static_cast<int>(events[1].kind), static_cast<int>(Kind::Mapped));
  QVERIFY(home.router.holds);
}

void TestMappingKeeper::a_changed_address_is_told() {
  Home home;
  home.pass(minutes(5));
  home.router.address = IpAddress::v4(192, 0, 2, 200);
  const auto events = home.pass(minutes(2));
  QCOMPARE(events.size(), std::size_t{1});
  QCOMPARE(static_cast<int>(events[0].kind), static_cast<int>(Kind::AddressChanged));
  QVERIFY(events[0].words.find("192.0.2.1:9000") != std::string::npos);
  QVERIFY(events[0].words.find("192.0.2.200:9000") != std::string::npos);
  QVERIFY(home.keeper.outside() == events[0].outside);
}

void TestMappingKeeper::a_router_that_can_not_tell_of_its_restart_gets_the_mapping_again() {
  Home home;
  home.router.permanent = true;
  home.router.tells = false;
  home.pass(minutes(5));
  QCOMPARE(home.router.mapped_at.size(), std::size_t{1});
  // Its new address shows the restart.
  home.router.holds = false;
  home.router.address = IpAddress::v4(192, 0, 2, 200);
  const auto events = home.pass(minutes(2));
  QCOMPARE(events.size(), std::size_t{1});
  QCOMPARE(static_cast<int>(events[0].kind), static_cast<int>(Kind::AddressChanged));
  QVERIFY(home.router.holds);
  // With the same address, nothing does.
  home.router.holds = false;
  QVERIFY(home.pass(minutes(31)).empty());
  QVERIFY(home.router.holds);
  QCOMPARE(home.router.mapped_at.size(), std::size_t{3});
}

void TestMappingKeeper::a_router_that_is_away_is_asked_less_and_less_often() {
  Home home;
  home.router.away = true;
  const std::size_t in_an_hour = home.pass(minutes(60)).size();
  QVERIFY2(in_an_hour >= 7 && in_an_hour <= 10, qPrintable(QString::number(in_an_hour)));
  home.router.away = false;
  const auto events = home.pass(minutes(16));
  QCOMPARE(events.size(), std::size_t{1});
  QCOMPARE(static_cast<int>(events[0].kind), static_cast<int>(Kind::Mapped));
  home.router.away = true;  // and is reported once when it goes away again
  const auto gone = home.pass(minutes(2));
  QVERIFY(!gone.empty() && home.keeper.failures() == 3);
  QCOMPARE(static_cast<int>(gone.front().kind), static_cast<int>(Kind::Lost));
  QVERIFY(!home.keeper.outside());
}

void TestMappingKeeper::two_missing_answers_are_no_loss() {
  Home home;
  home.pass(minutes(5));
  const auto outside = home.keeper.outside();
  QVERIFY(outside.has_value());
  for (int failures = 1; failures <= 2; ++failures) {
    home.router.away = true;
    for (int i = 0; i < 200 && home.keeper.failures() < failures; ++i) QVERIFY(home.pass(seconds(1)).empty());
    QCOMPARE(home.keeper.failures(), failures);
    QVERIFY(home.keeper.outside() == outside);
    home.router.away = false;
    QVERIFY(home.pass(minutes(2)).empty());
    QVERIFY(home.keeper.outside() == outside);
    QCOMPARE(home.keeper.failures(), 0);
  }
}

void TestMappingKeeper::a_node_that_can_not_ask_keeps_the_mapping_for_its_lease() {
  Home home;
  home.pass(minutes(5));
  const auto outside = home.keeper.outside();
  home.router.away = true;
  home.router.why = ErrorCode::Exhausted;
  QVERIFY(home.pass(minutes(54)).empty());
  QVERIFY(home.keeper.failures() == 0 && home.keeper.outside() == outside);
  const auto ended = home.pass(minutes(2));
  QCOMPARE(ended.size(), std::size_t{1});
  QCOMPARE(static_cast<int>(ended[0].kind), static_cast<int>(Kind::Lost));
  QVERIFY(!home.keeper.outside());
}

void TestMappingKeeper::the_mapping_is_removed_at_the_end() {
  Home home;
  QVERIFY(home.keeper.release(home.io).ok());  // nothing yet
  home.pass(minutes(1));
  QVERIFY(home.router.holds);
  QVERIFY(home.keeper.release(home.io).ok());
  QVERIFY(!home.router.holds && !home.keeper.outside());
}

void TestMappingKeeper::messages_of_nat_pmp() {
  using namespace nat_pmp;
  QCOMPARE(to_hex(outside_address_request()), std::string("0000"));
  QCOMPARE(to_hex(map_request(Operation::MapTcp, 0x1234, 0x5678, 3600)),
           std::string("000200001234567800000e10"));
  const auto address = parse_answer(from_hex("0080000000000064c0000207").value());
  QVERIFY(address.ok() && address->outside == IpAddress::v4(192, 0, 2, 7) && address->epoch == 100);
  const auto mapped = parse_answer(from_hex("00820000000000641234567800000e10").value());
  QVERIFY(mapped.ok() && mapped->operation == Operation::MapTcp && mapped->inside_port == 0x1234);
  QVERIFY(mapped->outside_port == 0x5678 && mapped->lifetime == 3600);
  const auto refused = parse_answer(from_hex("0082000200000064").value());
  QVERIFY(refused.ok() && refused->result == 2);
  QCOMPARE(result_error(refused->result).code, ErrorCode::Denied);
  for (const char* wrong :
       {"", "0080", "0180000000000064c0000207", "0002000000000064c0000207", "0080000000000064c00002",
        "0083000000000064", "0082000000000064", "0080000000000064c000020700"})
    QVERIFY2(!parse_answer(from_hex(wrong).value()).ok(), wrong);
}

void TestMappingKeeper::the_epoch_tells_a_restart_and_a_sleep() {
  using nat_pmp::mapping_may_be_gone;
  QVERIFY(!mapping_may_be_gone(1000, 1060, seconds(60)));
  QVERIFY(!mapping_may_be_gone(1000, 1055, seconds(60)));  // a slow clock
  QVERIFY(!mapping_may_be_gone(1000, 1069, seconds(60)));  // a fast one
  QVERIFY(!mapping_may_be_gone(1000, 998, seconds(0)));
  QVERIFY(mapping_may_be_gone(1000, 1040, seconds(60)));
  QVERIFY(mapping_may_be_gone(1000, 3, seconds(60)));
  QVERIFY(mapping_may_be_gone(1000, 1070, seconds(60)));
  QVERIFY(mapping_may_be_gone(1000, 8200, seconds(60)));  // two hours of sleep
}

NS_TEST(TestMappingKeeper)
#include "test_mapping_keeper.moc"
