// Scores of misbehaviour and the bans that follow, on a clock moved by hand.
#include <QtTest>

#include "core/net/conduct.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

using neuroshard::test::hour;
using neuroshard::test::minute;

Caller caller(std::uint8_t number, std::uint8_t network = 1) {
  Caller from;
  from.id.fill(number);
  from.endpoint = {platform::IpAddress::v4(11, 22, network, number), 9000};
  return from;
}

}  // namespace

class TestConduct : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void faults_add_up_to_a_ban_with_its_reason();
  void points_fade();
  void two_payloads_are_enough();
  void the_next_ban_is_longer();
  void a_program_that_waits_as_told_is_never_banned();
  void a_member_behind_a_flooded_range_comes_through();
  void a_member_at_the_same_address_comes_through();
  void a_node_that_was_only_reached_is_a_stranger_by_its_bytes();
  void a_node_of_a_flooded_range_that_nobody_knows_is_slow_only();
  void addresses_that_are_not_of_the_internet_are_not_counted();
  void garbage_closes_its_address_and_no_other();
  void one_customer_has_many_addresses_of_ipv6();
  void memory_is_bounded();
  void bans_survive_a_restart();
  void a_touched_file_is_refused();
  void a_wrong_clock_does_not_ban_for_ever();

 private:
  ManualClock clock_;
};

void TestConduct::faults_add_up_to_a_ban_with_its_reason() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  for (int i = 0; i < 4; ++i) QVERIFY(!conduct.fault(caller(1), Fault::Malformed));
  QVERIFY(!bans.reason(caller(1).id));
  QVERIFY(conduct.fault(caller(1), Fault::Malformed));
  const auto reason = bans.reason(caller(1).id);
  QVERIFY(reason.has_value());
  QCOMPARE(*reason, std::string("messages that can't be read (5 times)"));
  QVERIFY(!bans.reason(caller(2).id));
  QCOMPARE(conduct.faults(Fault::Malformed), std::uint64_t{5});
  clock_.advance(hour);
  QVERIFY(!bans.reason(caller(1).id));
  QCOMPARE(conduct.points(caller(1).id), 0.0);  // it begins anew
}

void TestConduct::points_fade() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  conduct.fault(caller(1), Fault::BadSignature);
  QCOMPARE(conduct.points(caller(1).id), 50.0);
  clock_.advance(10 * minute);
  QVERIFY(std::abs(conduct.points(caller(1).id) - 25) < 0.1);
  // One now and then, as a line that garbles might: for days.
  for (int i = 0; i < 500; ++i) {
    clock_.advance(15 * minute);
    QVERIFY(!conduct.fault(caller(1), Fault::Malformed));
  }
}

void TestConduct::two_payloads_are_enough() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  QVERIFY(conduct.fault(caller(1), Fault::Equivocation));
  QCOMPARE(*bans.reason(caller(1).id),
           std::string("equivocation: two signatures that contradict each other (1 times)"));
}

void TestConduct::the_next_ban_is_longer() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  for (const int hours : {1, 2, 4, 8, 16, 24, 24}) {
    QVERIFY(conduct.fault(caller(1), Fault::Equivocation));
    clock_.advance(hours * hour - minute);
    QVERIFY2(bans.reason(caller(1).id).has_value(), qPrintable(QString::number(hours)));
    clock_.advance(2 * minute);
    QVERIFY2(!bans.reason(caller(1).id), qPrintable(QString::number(hours)));
  }
  clock_.advance(25 * hour);  // and a day of peace is a new beginning
  QVERIFY(conduct.fault(caller(1), Fault::Equivocation));
  clock_.advance(hour + minute);
  QVERIFY(!bans.reason(caller(1).id));
}

void TestConduct::a_program_that_waits_as_told_is_never_banned() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  // One refusal each five seconds, for a day; who ignores them makes hundreds a second.
  for (int i = 0; i < 17'280; ++i) {
    clock_.advance(std::chrono::seconds(5));
    QVERIFY(!conduct.fault(caller(1), Fault::Flood));
  }
  int requests = 0;
  while (!conduct.fault(caller(2), Fault::Flood)) {
    clock_.advance(std::chrono::milliseconds(10));
    QVERIFY(++requests < 1000);
  }
}

// A campus of 254 computers, all of which send garbage, and a member among them.
void TestConduct::a_member_behind_a_flooded_range_comes_through() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  const Caller member = caller(77);
  conduct.set_known({KnownNode{member.id, {}}});
  QVERIFY(conduct.check(member).ok());  // it has called before
  for (int round = 0; round < 200; ++round) {
    clock_.advance(std::chrono::milliseconds(100));
    for (int number = 1; number < 255; ++number)
      if (number != 77) conduct.fault(caller(static_cast<std::uint8_t>(number)).endpoint.ip, Fault::NotTls);
  }
  QVERIFY(!conduct.welcome(caller(78).endpoint.ip));
  for (int i = 0; i < 100; ++i) {  // however often it comes
    QVERIFY(conduct.welcome(member.endpoint.ip));
    QVERIFY(conduct.may_greet(member.endpoint.ip));
    QVERIFY(conduct.check(member).ok());
  }
  // The control: the same computer, if it is not known.
  Conduct forgetful(bans, clock_, false);
  for (int i = 0; i < 200; ++i)
    for (int number = 1; number < 255; ++number)
      if (number != 77) forgetful.fault(caller(static_cast<std::uint8_t>(number)).endpoint.ip, Fault::NotTls);
  int greeted = 0;
  for (int i = 0; i < 100; ++i) greeted += forgetful.may_greet(member.endpoint.ip) ? 1 : 0;
  QCOMPARE(greeted, 4);
  // Another range notices nothing.
  QVERIFY(conduct.welcome(caller(1, 2).endpoint.ip) && conduct.may_greet(caller(1, 2).endpoint.ip));
  // The range is as good as any a quarter of an hour later.
  clock_.advance(15 * minute);
  for (int i = 0; i < 100; ++i) QVERIFY(conduct.may_greet(caller(78).endpoint.ip));
}

// Carrier-grade NAT: the culprit and the member have one address. Only the handshake tells them apart.
void TestConduct::a_member_at_the_same_address_comes_through() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  const Caller member = caller(5);
  Caller culprit = caller(6);
  culprit.endpoint.ip = member.endpoint.ip;
  conduct.set_known({KnownNode{member.id, {member.endpoint.ip}}});
  for (int i = 0; i < 1000; ++i) conduct.fault(member.endpoint.ip, Fault::NotTls);
  QVERIFY(conduct.welcome(member.endpoint.ip));
  QVERIFY(conduct.check(member).ok());
  QCOMPARE(conduct.check(culprit).error().code, ErrorCode::Denied);
  QVERIFY(!bans.reason(member.id));
  int greeted = 0;  // handshakes cost, so they are few: one each two seconds
  for (int i = 0; i < 600; ++i) {
    clock_.advance(std::chrono::milliseconds(100));
    greeted += conduct.may_greet(member.endpoint.ip) ? 1 : 0;
  }
  QVERIFY2(greeted >= 30 && greeted <= 35, qPrintable(QString::number(greeted)));
  // The control: without a known node behind it, the address is closed.
  conduct.set_known({});
  QVERIFY(!conduct.welcome(member.endpoint.ip));
  // A known node that misbehaves is banned like any other.
  conduct.set_known({KnownNode{member.id, {}}});
  QVERIFY(conduct.fault(member, Fault::Equivocation));
  QVERIFY(bans.reason(member.id).has_value());
}

void TestConduct::a_node_that_was_only_reached_is_a_stranger_by_its_bytes() {
  BanList bans(clock_);
  PeerRanks ranks;
  Conduct conduct(bans, clock_, false, {}, &ranks);
  const Caller reached = caller(1), member = caller(2), elsewhere = caller(2, 9);
  const std::vector<KnownNode> nodes = {{reached.id, {reached.endpoint.ip}},
                                        {member.id, {member.endpoint.ip}}};
  ranks.set_members({{member.id, PeerRank::Known}});
  conduct.set_known(nodes);
  QVERIFY(!conduct.has_ranked(reached.endpoint.ip));
  QVERIFY(conduct.has_ranked(member.endpoint.ip));
  // Calls don't change it. A member is known wherever it calls from.
  QVERIFY(conduct.check(reached).ok() && conduct.check(elsewhere).ok());
  QVERIFY(!conduct.has_ranked(reached.endpoint.ip));
  QVERIFY(conduct.has_ranked(elsewhere.endpoint.ip));
  // Both come through where others' faults have closed their addresses.
  for (const Caller& node : {reached, member}) {
    for (int i = 0; i < 150; ++i) conduct.fault(node.endpoint.ip, Fault::NotTls);
    QVERIFY(conduct.welcome(node.endpoint.ip));
  }
  ranks.set_members({});
  conduct.set_known(nodes);
  QVERIFY(!conduct.has_ranked(member.endpoint.ip) && !conduct.has_ranked(elsewhere.endpoint.ip));
}

void TestConduct::a_node_of_a_flooded_range_that_nobody_knows_is_slow_only() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  // Each id stays below its own limit.
  for (std::uint8_t number = 1; number <= 80; ++number)
    for (int i = 0; i < 2; ++i) QVERIFY(!conduct.fault(caller(number), Fault::Malformed));
  const Caller newcomer = caller(200);
  QVERIFY(conduct.welcome(newcomer.endpoint.ip));
  int greeted = 0;
  for (int i = 0; i < 100; ++i) greeted += conduct.may_greet(newcomer.endpoint.ip) ? 1 : 0;
  QCOMPARE(greeted, 4);
  clock_.advance(std::chrono::seconds(2));
  QVERIFY(conduct.may_greet(newcomer.endpoint.ip));
  QVERIFY(conduct.check(newcomer).ok());
  QVERIFY(bans.all().empty());
}

void TestConduct::addresses_that_are_not_of_the_internet_are_not_counted() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  for (std::uint8_t number = 1; number <= 100; ++number) {  // behind a relay all have this address
    Caller from = caller(number);
    from.endpoint.ip = platform::IpAddress::v4(127, 0, 0, 1);
    conduct.fault(from, Fault::Equivocation);
  }
  QVERIFY(conduct.welcome(platform::IpAddress::v4(127, 0, 0, 1)));
  QVERIFY(conduct.may_greet(platform::IpAddress::v4(127, 0, 0, 1)));
  QCOMPARE(bans.all().size(), std::size_t{100});
}

void TestConduct::garbage_closes_its_address_and_no_other() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false), lan(bans, clock_, true);
  const platform::IpAddress address = caller(1).endpoint.ip;
  // Somebody who looks what is there every half minute, all day.
  for (int i = 0; i < 2880; ++i) {
    clock_.advance(minute / 2);
    conduct.fault(address, Fault::NotTls);
  }
  QVERIFY(conduct.welcome(address));
  int more = 0;
  for (; conduct.welcome(address) && more < 200; ++more) {
    clock_.advance(std::chrono::milliseconds(100));
    conduct.fault(address, Fault::NotTls);
    lan.fault(address, Fault::NotTls);
  }
  QVERIFY2(more > 50 && more < 100, qPrintable(QString::number(more)));
  QVERIFY(lan.welcome(address));
  const auto refused = conduct.check(caller(1));
  QVERIFY2(refused.error().message.find("connections that are not for peers") != std::string::npos,
           refused.error().message.c_str());
  QVERIFY(conduct.welcome(caller(2).endpoint.ip) && conduct.may_greet(caller(2).endpoint.ip));
  clock_.advance(11 * minute);
  QVERIFY(conduct.welcome(address));
}

void TestConduct::one_customer_has_many_addresses_of_ipv6() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  platform::IpAddress address = platform::parse_ip("2a01:1:2:3::").value();
  for (int i = 0; i < 120; ++i) {
    address.bytes[15] = static_cast<std::uint8_t>(i);
    conduct.fault(address, Fault::NotTls);
  }
  address.bytes[15] = 200;
  QVERIFY(!conduct.welcome(address));
  address.bytes[7] = 4;
  QVERIFY(conduct.welcome(address));
}

void TestConduct::memory_is_bounded() {
  BanList bans(clock_);
  ConductRules rules;
  rules.remembered = 50;
  Conduct conduct(bans, clock_, false, rules);
  conduct.fault(caller(1), Fault::BadSignature);
  for (int i = 0; i < 5000; ++i) {
    Caller from = caller(2);
    store_le(from.id.data(), i);
    from.endpoint.ip = platform::IpAddress::v4(12, static_cast<std::uint8_t>(i / 256),
                                               static_cast<std::uint8_t>(i % 256), 1);
    conduct.fault(from, Fault::Flood);
  }
  QVERIFY(conduct.remembered() <= 150);
  QCOMPARE(conduct.points(caller(1).id), 50.0);  // small offenders don't wash a great one's past away
}

void TestConduct::bans_survive_a_restart() {
  Bytes kept;
  {
    BanList bans(clock_);
    Conduct conduct(bans, clock_, false);
    conduct.fault(caller(1), Fault::Equivocation);
    bans.ban(caller(2).id, 10 * minute, std::string(500, 'x'));
    kept = bans.encode();
  }
  clock_.advance(20 * minute);
  BanList again(clock_);
  QVERIFY(again.restore(kept).ok());
  QVERIFY(again.reason(caller(1).id).has_value());
  QVERIFY(!again.reason(caller(2).id));  // it is over
  // An earlier ban is remembered: the next one is longer.
  clock_.advance(hour);
  Conduct conduct(again, clock_, false);
  QVERIFY(conduct.fault(caller(1), Fault::Equivocation));
  clock_.advance(hour + minute);
  QVERIFY(again.reason(caller(1).id).has_value());
}

void TestConduct::a_touched_file_is_refused() {
  BanList bans(clock_);
  for (std::uint8_t i = 1; i < 20; ++i) bans.ban(caller(i).id, hour, "it lied");
  const Bytes kept = bans.encode();
  QVERIFY(kept.size() <= max_ban_file_bytes);
  for (std::size_t size = 0; size < kept.size(); ++size) {
    BanList other(clock_);
    QCOMPARE(other.restore(ByteSpan(kept).first(size)).error().code, ErrorCode::Corrupt);
    QVERIFY(other.all().empty());
  }
  Bytes many = kept;
  store_le(many.data() + 8, std::uint32_t{1} << 30);  // more than there are
  QCOMPARE(bans.restore(many).error().code, ErrorCode::Corrupt);
}

void TestConduct::a_wrong_clock_does_not_ban_for_ever() {
  Bytes kept;
  {
    ManualClock wrong;
    wrong.advance(std::chrono::hours(24 * 365 * 10));
    BanList bans(wrong);
    bans.ban(caller(1).id, hour, "it lied");
    kept = bans.encode();
  }
  BanList bans(clock_);
  QVERIFY(bans.restore(kept).ok());
  QVERIFY(bans.reason(caller(1).id).has_value());
  clock_.advance(25 * hour);
  QVERIFY(!bans.reason(caller(1).id));
}

NS_TEST(TestConduct)
#include "test_conduct.moc"
