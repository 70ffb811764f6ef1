// IP addresses: written and read, and which of them a stranger may send us to.
#include <QtTest>

#include "core/platform/socket/ip_address.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

class TestIpAddress : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void text_is_read_back();
  void what_is_no_address_is_refused_data();
  void what_is_no_address_is_refused();
  void private_and_reserved_ranges_are_known_data();
  void private_and_reserved_ranges_are_known();
  void neighbours_share_a_group();
};

void TestIpAddress::text_is_read_back() {
  for (const char* text : {"192.0.2.1:9000", "[2001:db8::1]:1", "[::1]:65535", "255.255.255.255:8080"})
    QCOMPARE(to_text(parse_endpoint(text).value()), std::string(text));
  QVERIFY(parse_ip("192.0.2.1").value() == IpAddress::v4(192, 0, 2, 1));
  QVERIFY(parse_ip("::ffff:192.0.2.1").value() == IpAddress::v4(192, 0, 2, 1));
}

void TestIpAddress::what_is_no_address_is_refused_data() {
  QTest::addColumn<QString>("text");
  for (const char* text :
       {"", ":", "192.0.2.1", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:-1",
        "192.0.2.1:9000x", "192.0.2:9000", "192.0.2.256:9000", "2001:db8::1:9000", "[192.0.2.1]:9000",
        "[2001:db8::1]", "[2001:db8::1%eth0]:9000", "example.org:9000", "[]:9000", " 192.0.2.1:9000"})
    QTest::newRow(text[0] == '\0' ? "nothing" : text) << text;
  QTest::newRow("endless") << QString(100'000, '1') + ":9000";
}

void TestIpAddress::what_is_no_address_is_refused() {
  QFETCH(QString, text);
  const auto endpoint = parse_endpoint(text.toStdString());
  QVERIFY(!endpoint.ok());
  QCOMPARE(endpoint.error().code, ErrorCode::InvalidArgument);
  QVERIFY(endpoint.error().message.size() < 300);
}

void TestIpAddress::private_and_reserved_ranges_are_known_data() {
  QTest::addColumn<bool>("routable");
  for (const char* text :
       {"8.8.8.8", "11.22.33.44", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "198.17.255.1",
        "198.20.0.1", "223.255.255.1", "2a00:1450::1", "2001:4860:4860::8888"})
    QTest::newRow(text) << true;
  for (const char* text :
       {"0.0.0.0",     "10.1.2.3",       "100.64.0.1",  "100.127.255.255", "127.0.0.1",       "169.254.1.1",
        "172.16.0.1",  "172.31.255.255", "192.168.1.1", "192.0.2.1",       "198.18.0.1",      "198.51.100.1",
        "203.0.113.9", "224.0.0.1",      "239.1.1.1",   "240.0.0.1",       "255.255.255.255", "::",
        "::1",         "fe80::1",        "fc00::1",     "fd12::1",         "ff02::1",         "2001:db8::1"})
    QTest::newRow(text) << false;
}

void TestIpAddress::private_and_reserved_ranges_are_known() {
  QFETCH(bool, routable);
  QCOMPARE(globally_routable(parse_ip(QTest::currentDataTag()).value()), routable);
}

void TestIpAddress::neighbours_share_a_group() {
  const auto group = [](const char* text) { return prefix_group(parse_ip(text).value()); };
  QCOMPARE(group("11.22.33.1"), group("11.22.33.254"));
  QVERIFY(group("11.22.33.1") != group("11.22.34.1"));
  QCOMPARE(group("2a00:1450:4001::1"), group("2a00:1450:4001:ffff::1"));
  QVERIFY(group("2a00:1450:4001::1") != group("2a00:1450:4002::1"));
  QVERIFY(group("0.0.0.1") != group("::1"));
}

NS_TEST(TestIpAddress)
#include "test_ip_address.moc"
