// Where this node dials because another one says so, and how often nobody may answer.
#include <QtTest>

#include "core/net/dial_gate.h"
#include "core/platform/socket/subnet.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;
using namespace neuroshard::test;  // NOLINT
using platform::IpAddress;

class TestDialGate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void addresses_of_no_node_are_refused_data();
  void addresses_of_no_node_are_refused();
  void a_private_address_of_an_own_subnet_is_dialled();
  void one_address_gets_few_dials();
  void one_address_group_gets_few_dials();
  void nodes_that_answer_are_not_counted();
  void many_addresses_reset_nothing();
  void an_endpoint_of_the_configuration_passes();

 private:
  static platform::Endpoint endpoint(const char* text) { return platform::parse_endpoint(text).value(); }
  ManualClock clock_;
};

void TestDialGate::addresses_of_no_node_are_refused_data() {
  QTest::addColumn<QString>("at");
  QTest::addColumn<bool>("internet");
  QTest::addColumn<bool>("lan");
  const auto row = [](const char* at, bool internet, bool lan) {
    QTest::newRow(at) << at << internet << lan;
  };
  row("11.2.3.4:9000", true, true);
  row("[2a01::5]:1024", true, true);
  row("11.2.3.4:1023", false, true);
  row("11.2.3.4:53", false, true);
  row("127.0.0.1:9000", false, true);
  row("[::1]:9000", false, true);
  row("192.168.1.1:9000", false, true);
  row("10.1.2.3:9000", false, true);
  row("100.64.1.1:9000", false, true);
  row("[fe80::1]:9000", false, true);
  row("169.254.3.4:9000", false, true);
  row("0.0.0.0:9000", false, false);
  row("[::]:9000", false, false);
  row("224.0.0.251:5353", false, false);
  row("[ff02::fb]:5353", false, false);
  row("255.255.255.255:9000", false, false);
}

void TestDialGate::addresses_of_no_node_are_refused() {
  QFETCH(QString, at);
  QFETCH(bool, internet);
  QFETCH(bool, lan);
  const platform::Endpoint to = endpoint(qPrintable(at));
  QCOMPARE(DialGate({false}, clock_, 1).check(to).ok(), internet);
  QCOMPARE(DialGate({true}, clock_, 1).check(to).ok(), lan);
}

void TestDialGate::a_private_address_of_an_own_subnet_is_dialled() {
  const platform::Subnet own{IpAddress::v4(192, 168, 7, 20), 96 + 24};
  const DialGate gate({false, [&](const IpAddress& ip) { return platform::is_within(ip, own); }}, clock_, 1);
  QVERIFY(gate.check(endpoint("192.168.7.1:9000")).ok());
  QVERIFY(!gate.check(endpoint("192.168.8.1:9000")).ok());
  QVERIFY(!gate.check(endpoint("192.168.7.1:80")).ok());
  QVERIFY(!gate.check(endpoint("127.0.0.1:9000")).ok());
}

void TestDialGate::one_address_gets_few_dials() {
  DialGate gate({}, clock_, 1);
  const auto dials = [&] {
    int passed = 0;
    for (std::uint16_t port = 2000; port < 7000; ++port)
      passed += gate.admit({IpAddress::v4(11, 2, 3, 4), port}).ok() ? 1 : 0;
    return passed;
  };
  QCOMPARE(dials(), 24);
  QCOMPARE(gate.admit({IpAddress::v4(11, 2, 3, 4), 2000}).error().code, ErrorCode::Exhausted);
  clock_.advance(5 * minute);
  QCOMPARE(dials(), 10);
}

void TestDialGate::one_address_group_gets_few_dials() {
  DialGate gate({}, clock_, 1);
  int passed = 0;
  for (int host = 0; host < 256; ++host)
    passed += gate.admit({IpAddress::v4(11, 2, 3, static_cast<std::uint8_t>(host)), 9000}).ok() ? 1 : 0;
  QCOMPARE(passed, 48);
  QVERIFY(gate.admit({IpAddress::v4(11, 2, 4, 1), 9000}).ok());
}

void TestDialGate::nodes_that_answer_are_not_counted() {
  DialGate gate({}, clock_, 1);
  for (std::uint16_t port = 2000; port < 3000; ++port) {
    const platform::Endpoint at{IpAddress::v4(11, 2, 3, 4), port};
    QVERIFY(gate.admit(at).ok());
    gate.answered(at);
  }
}

void TestDialGate::many_addresses_reset_nothing() {
  DialGate gate({}, clock_, 7);
  const platform::Endpoint victim{IpAddress::v4(11, 2, 3, 4), 9000};
  while (gate.admit(victim).ok()) {
  }
  for (int i = 0; i < 100'000; ++i)
    (void)gate.admit({IpAddress::v4(12, static_cast<std::uint8_t>(i >> 16), static_cast<std::uint8_t>(i >> 8),
                                    static_cast<std::uint8_t>(i)),
                      9000});
  QVERIFY(!gate.admit(victim).ok());
}

void TestDialGate::an_endpoint_of_the_configuration_passes() {
  const platform::Endpoint tracker = endpoint("11.2.3.4:443"), other = endpoint("11.2.3.4:80");
  DialGate gate({false}, clock_, 1);
  QVERIFY(!gate.check(tracker).ok());
  gate.name(tracker);
  for (int i = 0; i < 1000; ++i) QVERIFY(gate.admit(tracker).ok());
  QVERIFY(!gate.check(other).ok());
  for (int i = 0; i < 64; ++i) {
    platform::Endpoint next = endpoint("11.2.3.5:443");
    next.port = static_cast<std::uint16_t>(100 + i);
    gate.name(next);
  }
  QVERIFY(!gate.check(tracker).ok());  // the newest are kept
}

NS_TEST(TestDialGate)
#include "test_dial_gate.moc"
