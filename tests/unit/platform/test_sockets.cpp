// Datagrams, connections and the way out of this machine.
#include <QtTest>

#include "core/platform/socket/default_gateway.h"
#include "core/platform/socket/socket_wait.h"
#include "core/platform/socket/tcp_socket.h"
#include "core/platform/socket/udp_socket.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

namespace {

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);

bool readable(int descriptor) {
  SocketWait wait{descriptor, true, false, false};
  return wait_for(Span<SocketWait>(&wait, 1), std::chrono::seconds(10)).value_or(false) && wait.read;
}

bool established(const TcpSocket& socket) {
  SocketWait wait{socket.descriptor(), false, true, false};
  return wait_for(Span<SocketWait>(&wait, 1), std::chrono::seconds(10)).value_or(false) &&
         socket.connected().value_or(false);
}

}  // namespace

class TestSockets : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void datagrams_arrive_and_say_from_where();
  void an_empty_datagram_is_one();
  void a_taken_port_is_named();
  void a_connection_carries_bytes_and_its_end();
  void a_refused_connection_fails();
  void two_sockets_share_a_port_when_asked_to();
  void the_gateway_is_that_of_the_best_default_route();
};

void TestSockets::datagrams_arrive_and_say_from_where() {
  for (const IpAddress& ip : {loopback, parse_ip("::1").value()}) {
    auto a = UdpSocket::open({ip, 0}), b = UdpSocket::open({ip, 0});
    if (!a.ok() && !ip.is_v4()) QSKIP("this machine has no IPv6");
    QVERIFY(a.ok() && b.ok());
    std::array<std::uint8_t, 8> buffer{};
    QVERIFY(!b->receive(buffer)->has_value());
    QVERIFY(a->send_to(as_bytes("hello"), b->local().value()).ok());
    QVERIFY(readable(b->descriptor()));
    const auto got = b->receive(buffer);
    QVERIFY(got.ok() && got->has_value());
    QCOMPARE((*got)->size, std::size_t{5});
    QVERIFY((*got)->from == a->local().value());
  }
}

void TestSockets::an_empty_datagram_is_one() {
  auto a = UdpSocket::open({loopback, 0}), b = UdpSocket::open({loopback, 0});
  QVERIFY(a->send_to({}, b->local().value()).ok());
  QVERIFY(readable(b->descriptor()));
  std::array<std::uint8_t, 8> buffer{};
  const auto got = b->receive(buffer);
  QVERIFY(got.ok() && got->has_value() && (*got)->size == 0);
}

void TestSockets::a_taken_port_is_named() {
  auto a = TcpListener::open({loopback, 0});
  const Endpoint taken = a->local().value();
  const auto b = TcpListener::open(taken);
  QVERIFY(!b.ok());
  QCOMPARE(b.error().code, ErrorCode::Busy);
  QVERIFY(b.error().message.find(to_text(taken)) != std::string::npos);
}

void TestSockets::a_connection_carries_bytes_and_its_end() {
  auto listener = TcpListener::open({loopback, 0});
  auto caller = TcpSocket::dial(listener->local().value());
  QVERIFY(caller.ok() && established(*caller));
  QVERIFY(readable(listener->descriptor()));
  auto accepted = listener->accept();
  QVERIFY(accepted.ok() && accepted->has_value());
  QVERIFY((*accepted)->from == caller->local().value());
  QVERIFY(!listener->accept()->has_value());
  QCOMPARE(caller->write_some(as_bytes("abc")).value(), std::size_t{3});
  caller->shut_down_writing();
  TcpSocket& callee = (*accepted)->socket;
  QVERIFY(readable(callee.descriptor()));
  std::array<std::uint8_t, 8> buffer{};
  QCOMPARE(callee.read_some(buffer).value(), std::size_t{3});
  QVERIFY(readable(callee.descriptor()));
  QCOMPARE(callee.read_some(buffer).error().code, ErrorCode::Unavailable);
  QCOMPARE(callee.write_some(as_bytes("back")).value(), std::size_t{4});  // the other direction is still open
  QVERIFY(readable(caller->descriptor()));
  QCOMPARE(caller->read_some(buffer).value(), std::size_t{4});
}

void TestSockets::a_refused_connection_fails() {
  auto listener = TcpListener::open({loopback, 0});
  const Endpoint nobody = listener->local().value();
  listener = TcpListener();
  auto caller = TcpSocket::dial(nobody);
  if (caller.ok()) {
    SocketWait wait{caller->descriptor(), false, true, false};
    QVERIFY(wait_for(Span<SocketWait>(&wait, 1), std::chrono::seconds(10)).ok());
    const auto state = caller->connected();
    QVERIFY(!state.ok());
    QCOMPARE(state.error().code, ErrorCode::Unavailable);
  }
}

void TestSockets::two_sockets_share_a_port_when_asked_to() {
  auto one = TcpListener::open({loopback, 0}), two = TcpListener::open({loopback, 0});
  auto first = TcpSocket::dial(one->local().value(), {Endpoint{loopback, 0}, true});
  QVERIFY(first.ok());
  const Endpoint shared = first->local().value();
  auto second = TcpSocket::dial(two->local().value(), {shared, true});
  QVERIFY2(second.ok(), second.ok() ? "" : second.error().message.c_str());
  QVERIFY(established(*first) && established(*second));
  QVERIFY(second->local().value() == shared);
  const auto third = TcpSocket::dial(one->local().value(), {shared, false});
  QVERIFY(!third.ok());
  QCOMPARE(third.error().code, ErrorCode::Busy);
}

void TestSockets::the_gateway_is_that_of_the_best_default_route() {
  const std::string table =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth1\t00000000\t0103000A\t0002\t0\t0\t1\t00000000\t0\t0\t0\n"     // down
      "eth0\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";  // the network itself
  QCOMPARE(to_text(gateway_in_route_table(table).value()), std::string("10.0.2.1"));
  QCOMPARE(gateway_in_route_table("").error().code, ErrorCode::NotFound);
  QCOMPARE(gateway_in_route_table("eth0\t00000000\tzz\t0003\t0\t0\t1\t00000000").error().code,
           ErrorCode::NotFound);
}

NS_TEST(TestSockets)
#include "test_sockets.moc"
