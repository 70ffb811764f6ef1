// The STUN client: its sendings on a clock that the test moves, and real exchanges with a server of the test.
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/nat/stun_client.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
const Endpoint server{IpAddress::v4(192, 0, 2, 1), 3478};
const Endpoint outside{IpAddress::v4(192, 0, 2, 77), 4711};

class Counting final : public crypto::Entropy {
 public:
  void fill(MutableByteSpan target) override {
    for (std::uint8_t& byte : target) byte = ++last_;
  }

 private:
  std::uint8_t last_ = 0;
};

Bytes answer_to(ByteSpan request, const Endpoint& mapped) {
  const auto message = stun::Message::parse(request);
  stun::MessageWriter writer(stun::Class::Success, stun::Method::Binding, message->transaction());
  return writer.add_xor_address(stun::Attribute::XorMappedAddress, mapped).add_fingerprint().bytes();
}

// A STUN server that tells what it sees, or, when told to, another port with each question.
class Server {
 public:
  explicit Server(bool lies_about_ports = false) : lies_(lies_about_ports) {
    // One number for both: another program may have it for TCP already.
    for (bool both = false; !both;) {
      udp_ = std::move(*platform::UdpSocket::open({loopback, 0}));
      auto tcp = platform::TcpListener::open(udp_.local().value());
      if ((both = tcp.ok())) tcp_ = std::move(*tcp);
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stop_ = true;
    thread_.join();
  }
  Endpoint endpoint() const { return udp_.local().value(); }
  std::atomic<int> ignore{0};  // so many datagrams get no answer
  std::atomic<int> seen{0};

 private:
  Endpoint told(Endpoint from) {
    if (lies_) from.port = static_cast<std::uint16_t>(1000 + seen);
    return from;
  }
  void serve() {
    std::array<std::uint8_t, 2048> buffer{};
    while (!stop_) {
      std::array<platform::SocketWait, 2> waits{
          {{udp_.descriptor(), true, false, false}, {tcp_.descriptor(), true, false, false}}};
      if (!platform::wait_for(waits, milliseconds(20)).value_or(false)) continue;
      if (const auto got = udp_.receive(buffer); got.ok() && got->has_value()) {
        ++seen;
        if (ignore > 0) {
          --ignore;
        } else {
          (void)udp_.send_to(answer_to(ByteSpan(buffer.data(), (*got)->size), told((*got)->from)),
                             (*got)->from);
        }
      }
      auto accepted = tcp_.accept();
      if (!accepted.ok() || !accepted->has_value()) continue;
      platform::TcpSocket& socket = (*accepted)->socket;
      platform::SocketWait wait{socket.descriptor(), true, false, false};
      if (!platform::wait_for(Span<platform::SocketWait>(&wait, 1), seconds(5)).value_or(false)) continue;
      const std::size_t size = socket.read_some(buffer).value_or(0);
      ++seen;
      if (size > 0)
        (void)socket.write_some(answer_to(ByteSpan(buffer.data(), size), told((*accepted)->from)));
      kept_.push_back(std::move(socket));
    }
  }

  bool lies_;
  platform::UdpSocket udp_;
  platform::TcpListener tcp_;
  std::vector<platform::TcpSocket> kept_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

class TestStunClient : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_question_is_repeated_at_doubling_intervals();
  void only_the_servers_answer_to_this_question_counts();
  void a_lost_question_is_asked_again();
  void the_kind_of_mapping_data();
  void the_kind_of_mapping();
  void a_server_that_is_away_is_named();
  void cancelling_ends_the_wait();

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
};

void TestStunClient::a_question_is_repeated_at_doubling_intervals() {
  ManualClock clock;
  Counting entropy;
  BindingQuery query(server, entropy, stun_rule, clock.monotonic_now());
  std::vector<long> sent_at;
  Bytes first;
  for (int ms = 0; !query.result(clock.monotonic_now()); ms += 50) {
    if (const auto datagram = query.due(clock.monotonic_now())) {
      sent_at.push_back(ms);
      if (first.empty()) first.assign(datagram->begin(), datagram->end());
      QVERIFY(Bytes(datagram->begin(), datagram->end()) ==
              first);  // the same request, so the same transaction
    }
    QVERIFY(ms < 60'000);
    clock.advance(milliseconds(50));
  }
  QCOMPARE(sent_at, (std::vector<long>{0, 500, 1500, 3500, 7500}));
  QCOMPARE(clock.monotonic_now().time_since_epoch(), Duration(milliseconds(15'500)));
  const auto result = query.result(clock.monotonic_now());
  QCOMPARE(result->error().code, ErrorCode::Timeout);
  QVERIFY(result->error().message.find("192.0.2.1:3478") != std::string::npos);
}

void TestStunClient::only_the_servers_answer_to_this_question_counts() {
  ManualClock clock;
  Counting entropy;
  BindingQuery query(server, entropy, stun_rule, clock.monotonic_now());
  const ByteSpan request = *query.due(clock.monotonic_now());
  const Bytes good = answer_to(request, outside);
  query.receive(good, Endpoint{server.ip, 3479});  // from somebody else
  Bytes other = good;
  other[8] ^= 1;  // another transaction; the fingerprint is wrong, too
  query.receive(other, server);
  BindingQuery stranger(server, entropy, stun_rule, clock.monotonic_now());
  query.receive(answer_to(*stranger.due(clock.monotonic_now()), outside), server);
  query.receive(as_bytes("garbage"), server);
  query.receive(request, server);  // our own request, reflected
  QVERIFY(!query.result(clock.monotonic_now()));
  query.receive(good, server);
  QVERIFY(query.result(clock.monotonic_now())->value() == outside);
  clock.advance(seconds(60));
  QVERIFY(!query.due(clock.monotonic_now()));
  QVERIFY(query.result(clock.monotonic_now())->ok());
}

void TestStunClient::a_lost_question_is_asked_again() {
  Server real;
  real.ignore = 2;
  const Io io{clock_, entropy_, {}};
  auto socket = platform::UdpSocket::open({loopback, 0});
  const auto found = outside_endpoint_udp(io, *socket, real.endpoint(), {milliseconds(20), 9, seconds(10)});
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QVERIFY(*found == socket->local().value());
  QVERIFY(real.seen >= 3);
}

void TestStunClient::the_kind_of_mapping_data() {
  QTest::addColumn<bool>("lies");
  QTest::addColumn<int>("servers");
  QTest::addColumn<int>("expected");
  QTest::newRow("none") << false << 2 << static_cast<int>(Mapping::None);
  QTest::newRow("one server, another port") << true << 1 << static_cast<int>(Mapping::OneServer);
  QTest::newRow("another port each time") << true << 2 << static_cast<int>(Mapping::EndpointDependent);
}

void TestStunClient::the_kind_of_mapping() {
  QFETCH(bool, lies);
  QFETCH(int, servers);
  QFETCH(int, expected);
  Server real(lies);
  const std::vector<Endpoint> asked(static_cast<std::size_t>(servers), real.endpoint());
  const Io io{clock_, entropy_, {}};
  const auto udp = find_mapping_udp(io, asked, 0, {milliseconds(200), 5, seconds(5)});
  QVERIFY(udp.ok());
  QCOMPARE(static_cast<int>(udp->mapping), expected);
  QVERIFY(udp->outside && udp->failures.empty());
  // Two connections from one local port must differ in the remote one: a second server.
  Server second(lies);
  const std::vector<Endpoint> tcp_servers = {real.endpoint(), second.endpoint()};
  const auto tcp = find_mapping_tcp(
      io, Span<const Endpoint>(tcp_servers).first(static_cast<std::size_t>(servers)), 0, seconds(10));
  QVERIFY2(tcp.ok(), tcp.ok() ? "" : tcp.error().message.c_str());
  if (!lies) QCOMPARE(static_cast<int>(tcp->mapping), expected);
  QVERIFY(tcp->outside && tcp->failures.empty());
}

void TestStunClient::a_server_that_is_away_is_named() {
  const Endpoint away = platform::UdpSocket::open({loopback, 0})->local().value();  // closed at once
  const std::vector<Endpoint> asked = {away};
  const Io io{clock_, entropy_, {}};
  const auto udp = find_mapping_udp(io, asked, 0, {milliseconds(5), 2, milliseconds(10)});
  QVERIFY(udp.ok() && udp->mapping == Mapping::NoAnswer && udp->failures.size() == 1);
  QVERIFY(udp->failures[0].message.find(to_text(away)) != std::string::npos);
  const auto tcp = find_mapping_tcp(io, asked, 0, seconds(10));
  QVERIFY(tcp.ok() && tcp->mapping == Mapping::NoAnswer && tcp->failures.size() == 1);
}

void TestStunClient::cancelling_ends_the_wait() {
  CancelSource source;
  source.cancel();
  const Io io{clock_, entropy_, source.token()};
  auto socket = platform::UdpSocket::open({loopback, 0});
  const auto found = outside_endpoint_udp(io, *socket, socket->local().value());
  QCOMPARE(found.error().code, ErrorCode::Cancelled);
}

NS_TEST(TestStunClient)
#include "test_stun_client.moc"
