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
  void many_nodes_of_one_prefix_are_refused_together();
  void addresses_that_are_not_of_the_internet_are_not_counted();
  void who_says_nothing_of_itself_is_counted_by_address();
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

void TestConduct::many_nodes_of_one_prefix_are_refused_together() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  const std::uint64_t group = platform::prefix_group(caller(1, 1).endpoint.ip);
  // Each stays below its own limit.
  for (std::uint8_t number = 1; number <= 10; ++number) {
    QVERIFY(!bans.reason_of_prefix(group));
    QVERIFY(!conduct.fault(caller(number, 1), Fault::Malformed));
    QVERIFY(!conduct.fault(caller(number, 1), Fault::Malformed));
  }
  const auto reason = bans.reason_of_prefix(group);
  QVERIFY(reason.has_value());
  QVERIFY2(reason->find("can't be read") != std::string::npos, reason->c_str());
  QVERIFY(!bans.reason_of_prefix(platform::prefix_group(caller(1, 2).endpoint.ip)));
  clock_.advance(11 * minute);
  QVERIFY(!bans.reason_of_prefix(group));
}

void TestConduct::addresses_that_are_not_of_the_internet_are_not_counted() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false);
  for (std::uint8_t number = 1; number <= 100; ++number) {  // behind a relay all have this address
    Caller from = caller(number);
    from.endpoint.ip = platform::IpAddress::v4(127, 0, 0, 1);
    conduct.fault(from, Fault::Equivocation);
  }
  QCOMPARE(bans.prefixes(), std::size_t{0});
  QCOMPARE(bans.all().size(), std::size_t{100});
}

void TestConduct::who_says_nothing_of_itself_is_counted_by_address() {
  BanList bans(clock_);
  Conduct conduct(bans, clock_, false), lan(bans, clock_, true);
  const platform::IpAddress address = caller(1).endpoint.ip;
  const std::uint64_t group = platform::prefix_group(address);
  // Somebody who looks what is there every half minute, all day.
  for (int i = 0; i < 2880; ++i) {
    clock_.advance(minute / 2);
    conduct.fault(address, Fault::NotTls);
  }
  QVERIFY(!bans.reason_of_prefix(group));
  int more = 0;
  for (; !bans.reason_of_prefix(group) && more < 200; ++more) {
    clock_.advance(std::chrono::milliseconds(100));
    conduct.fault(address, Fault::NotTls);
    conduct.fault(platform::IpAddress::v4(127, 0, 0, 1), Fault::NotTls);  // behind a relay
    lan.fault(caller(1, 2).endpoint.ip, Fault::NotTls);
  }
  QVERIFY2(more > 50 && more < 100, qPrintable(QString::number(more)));
  const auto reason = bans.reason_of_prefix(group);
  QVERIFY2(reason && reason->find("connections that are not for peers") != std::string::npos,
           reason.value_or("").c_str());
  QCOMPARE(bans.prefixes(), std::size_t{1});
  clock_.advance(11 * minute);
  QVERIFY(!bans.reason_of_prefix(group));
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
  QVERIFY(conduct.remembered() <= 100);
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
