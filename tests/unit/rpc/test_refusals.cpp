// A node's refusals, over the loopback interface, each with its reason and counted; and that an honest peer
// is served all the while.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <QTcpSocket>
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rpc/free_client.h"

using namespace neuroshard;
using namespace neuroshard::testing;
namespace wire = neuroshard::rpc::detail;

namespace {

constexpr auto method = static_cast<net::Method>(60'000);

std::string take(BIO* text) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(text, &data);
  std::string result(data, static_cast<std::size_t>(size));
  BIO_free_all(text);
  return result;
}

// A certificate of any key and any time.
Pem foreign(EVP_PKEY* key, long from, long until) {
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256());
  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, certificate);
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {take(text), take(key_text)};
}

bool served(GrpcPair& pair, net::PeerChannel& channel) {
  std::optional<Expected<Bytes>> answer;
  channel.call(method, Bytes{1, 2, 3}, std::chrono::seconds(10),
               [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
  return pair.run_until([&] { return answer.has_value(); }) && answer->ok() && **answer == Bytes{1, 2, 3};
}

// Of 500 connections. The address sanitizer keeps what was freed for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t most_growth = 64u << 20;
#else
constexpr std::size_t most_growth = 16u << 20;
#endif

std::size_t resident_bytes() {
  QFile file("/proc/self/statm");
  if (!file.open(QIODevice::ReadOnly)) return 0;
  return file.readAll().split(' ').value(1).toULongLong() * 4096;
}

}  // namespace

class TestRefusals : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_good_client_of_this_test_is_served();
  void certificates_data();
  void certificates();
  void a_wrong_pin();
  void tls_1_2();
  void what_is_no_tls_data();
  void what_is_no_tls();
  void no_hello_and_unknown_calls();
  void refused_calls_count_as_given_up();
  void garbage_is_no_news_for_ever();
  void garbage_closes_its_address_to_strangers();
  void bytes_of_a_node_that_was_only_reached_wait();
  void oversized();
  void slow_hello();
  void slow_request();
  void one_address_has_its_share();
  void five_hundred_connections();
};

// Else the refusals below would be no evidence.
void TestRefusals::a_good_client_of_this_test_is_served() {
  GrpcPair pair;
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  const grpc::Status status = client.call(pair, wire::call_path, good_hello(), 100);
  QVERIFY2(status.ok(), status.error_message().c_str());
  QCOMPARE(pair.refusals_b.all(), 0u);
}

void TestRefusals::certificates_data() {
  QTest::addColumn<QByteArray>("kind");
  QTest::addColumn<int>("refusal");
  QTest::newRow("none") << QByteArray("none") << int(net::Refusal::NoCertificate);
  QTest::newRow("RSA") << QByteArray("rsa") << int(net::Refusal::NotEd25519);
  QTest::newRow("P-256") << QByteArray("ec") << int(net::Refusal::NotEd25519);
  QTest::newRow("expired") << QByteArray("expired") << int(net::Refusal::Expired);
  QTest::newRow("not yet valid") << QByteArray("early") << int(net::Refusal::NotYetValid);
  QTest::newRow("banned") << QByteArray("banned") << int(net::Refusal::Banned);
}

void TestRefusals::certificates() {
  QFETCH(QByteArray, kind);
  QFETCH(int, refusal);
  GrpcPair pair;
  std::optional<Pem> pem;
  constexpr long hour = 3600;
  const auto ed25519 = [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); };
  if (kind == "rsa")
    pem = foreign(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}), -hour, hour);
  if (kind == "ec") pem = foreign(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), -hour, hour);
  if (kind == "expired") pem = foreign(ed25519(), -2 * hour, -hour);
  if (kind == "early") pem = foreign(ed25519(), hour, 2 * hour);
  if (kind == "banned") {
    const auto key = key_of(9);
    pem = pem_of(key);
    pair.bans_b.ban(crypto::node_id(key.public_key()), std::chrono::hours(1), "it lied");
  }
  const auto honest = pair.connect();
  QVERIFY2(honest, pair.error.describe().c_str());
  Client client(pair.answering().endpoint(), pem);
  const grpc::Status status = client.call(pair, wire::call_path, good_hello(), 100);
  QVERIFY(!status.ok());
  QVERIFY(pair.refusals_b.of(static_cast<net::Refusal>(refusal)) >= 1);
  QCOMPARE(pair.refusals_b.all(), pair.refusals_b.of(static_cast<net::Refusal>(refusal)));
  QVERIFY(served(pair, *honest));
}

void TestRefusals::a_wrong_pin() {
  GrpcPair pair;
  const auto honest = pair.connect();  // a good connection to the same address is not shared
  QVERIFY(honest);
  std::optional<Error> error;
  net::Dial dial = pair.dial();
  dial.id = crypto::node_id(key_of(3).public_key());
  pair.a().connect(dial, net::connect_deadline, [&](const auto& channel) { error = channel.error(); });
  QVERIFY(pair.run_until([&] { return error.has_value(); }));
  QCOMPARE(error->code, ErrorCode::Denied);
  QVERIFY2(error->message.find("another node answers there") == 0, error->message.c_str());
  QCOMPARE(pair.refusals_a.of(net::Refusal::WrongId), 1u);
  // Without a pin whoever answers is taken, and is who the certificate says.
  std::shared_ptr<net::PeerChannel> channel;
  dial.id.reset();
  pair.a().connect(dial, net::connect_deadline, [&](auto result) { channel = result.value(); });
  QVERIFY(pair.run_until([&] { return channel != nullptr; }));
  QVERIFY(channel->id() == pair.id_b);
}

void TestRefusals::tls_1_2() {
  GrpcPair pair;
  QProcess openssl;
  openssl.start("openssl", {"s_client", "-tls1_2", "-alpn", "h2", "-connect",
                            QString::fromStdString(platform::to_text(pair.answering().endpoint()))});
  if (!openssl.waitForStarted()) QSKIP("the program openssl is not installed");
  openssl.closeWriteChannel();
  QVERIFY(openssl.waitForFinished());
  QVERIFY(openssl.exitCode() != 0);
  const QByteArray said = openssl.readAllStandardError();
  QVERIFY2(said.contains("alert protocol version"), said.constData());
  QCOMPARE(pair.refusals_b.of(net::Refusal::OldTls), 1u);
  QCOMPARE(pair.refusals_b.all(), 1u);
  QVERIFY(pair.connect());
}

void TestRefusals::what_is_no_tls_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::newRow("plaintext HTTP/2") << QByteArray("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  QTest::newRow("HTTP/1") << QByteArray("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  QTest::newRow("zeros") << QByteArray(1000, '\0');
  QTest::newRow("a record of no length") << QByteArray("\x16\x03\x01\x00\x00garbage", 12);
  QTest::newRow("a record too long") << QByteArray("\x16\x03\x01\xff\xffgarbage", 12);
  QTest::newRow("an alert") << QByteArray("\x15\x03\x01\x00\x02\x01\x00", 7);
}

void TestRefusals::what_is_no_tls() {
  QFETCH(QByteArray, bytes);
  GrpcPair pair;
  QTcpSocket socket;
  socket.connectToHost("127.0.0.1", pair.answering().endpoint().port);
  QVERIFY(socket.waitForConnected());
  socket.write(bytes);
  QTRY_COMPARE_WITH_TIMEOUT(socket.state(), QAbstractSocket::UnconnectedState, 10'000);
  QCOMPARE(pair.refusals_b.of(net::Refusal::NotTls), 1u);
  QTRY_COMPARE(pair.conduct_b.faults(net::Fault::NotTls), std::uint64_t{1});
  QVERIFY(pair.connect());
}

void TestRefusals::no_hello_and_unknown_calls() {
  GrpcPair pair;
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  QCOMPARE(client.call(pair, wire::call_path, std::nullopt, 1).error_code(),
           grpc::StatusCode::PERMISSION_DENIED);
  QCOMPARE(client.call(pair, wire::call_path, "nonsense", 1).error_code(),
           grpc::StatusCode::PERMISSION_DENIED);
  QCOMPARE(pair.refusals_b.of(net::Refusal::NoHello), 2u);
  QCOMPARE(client.call(pair, "/grpc.health.v1.Health/Check", good_hello(), 1).error_code(),
           grpc::StatusCode::UNIMPLEMENTED);
  QCOMPARE(pair.refusals_b.of(net::Refusal::UnknownMethod), 1u);
}

void TestRefusals::refused_calls_count_as_given_up() {
  rpc::RpcLimits limits;
  limits.connections.given_up_burst = 4;
  limits.connections.given_up_per_second = 0;
  GrpcPair pair(limits);
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  for (int i = 0; i < 4; ++i)
    QCOMPARE(client.call(pair, wire::call_path, "nonsense", 1).error_code(),
             grpc::StatusCode::PERMISSION_DENIED);
  QCOMPARE(client.call(pair, wire::call_path, "nonsense", 1).error_code(),
           grpc::StatusCode::RESOURCE_EXHAUSTED);
  QCOMPARE(pair.refusals_b.of(net::Refusal::NoHello), 4u);
}

// Calls that no program of ours makes: refused, and the caller banned when there are too many.
void TestRefusals::garbage_is_no_news_for_ever() {
  GrpcPair pair;
  const auto honest = pair.connect();
  QVERIFY(honest);
  const auto key = key_of(9);
  Client client(pair.answering().endpoint(), pem_of(key));
  constexpr int enough = 6;  // points fade from the first moment on
  for (int i = 0; i < enough; ++i) {
    QCOMPARE(client.call(pair, wire::call_path, good_hello(), 1, 1u << 20).error_code(),
             grpc::StatusCode::DATA_LOSS);
    QVERIFY(served(pair, *honest));
  }
  QCOMPARE(pair.refusals_b.of(net::Refusal::Malformed), std::uint64_t{enough});
  const grpc::Status status = client.call(pair, wire::call_path, good_hello(), 1);
  QCOMPARE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  QVERIFY2(status.error_message().find("banned: messages that can't be read") != std::string::npos,
           status.error_message().c_str());
  QVERIFY(pair.bans_b.reason(crypto::node_id(key.public_key())).has_value());
  QVERIFY(pair.refusals_b.of(net::Refusal::Banned) >= 1);
  QVERIFY(served(pair, *honest));
  QCOMPARE(pair.bans_b.all().size(), std::size_t{1});
}

// No stranger from there comes as far as TLS, and who is connected is not heard, unless it is a known node.
void TestRefusals::garbage_closes_its_address_to_strangers() {
  GrpcPair pair;
  const auto before = pair.connect();
  QVERIFY(before);
  for (int i = 0; i < 150; ++i)
    pair.conduct_b.fault(platform::IpAddress::v4(127, 0, 0, 1), net::Fault::NotTls);
  QTcpSocket socket;
  socket.connectToHost("127.0.0.1", pair.answering().endpoint().port);
  QTRY_COMPARE_WITH_TIMEOUT(socket.state(), QAbstractSocket::UnconnectedState, 10'000);
  QTRY_VERIFY(pair.refusals_b.of(net::Refusal::Banned) >= 1);
  QVERIFY(!served(pair, *before));
  QCOMPARE(pair.refusals_b.of(net::Refusal::TooSlow), 0u);
  // The same address, with a known node behind it: the open connection is heard, and a new one comes through.
  pair.conduct_b.set_known({net::KnownNode{pair.id_a, {platform::IpAddress::v4(127, 0, 0, 1)}}});
  QVERIFY(served(pair, *before));
  QVERIFY(pair.connect());
}

// A request of that size arrives at once from a known peer, and takes seconds where the bytes wait.
void TestRefusals::bytes_of_a_node_that_was_only_reached_wait() {
  constexpr std::size_t large = 128u << 10;
  GrpcPair pair;
  const net::NodeId id = crypto::node_id(key_of(9).public_key());
  const net::KnownNode node{id, {platform::IpAddress::v4(127, 0, 0, 1)}};
  pair.conduct_b.set_known({node});
  Client reached(pair.answering().endpoint(), pem_of(key_of(9)));
  QVERIFY(!reached.call(pair, wire::call_path, good_hello(), large).ok());
  QVERIFY(pair.refusals_b.of(net::Refusal::TooSlow) >= 1);
  pair.ranks_of_b.set_members({{id, net::PeerRank::Known}});
  pair.conduct_b.set_known({node});
  Client known(pair.answering().endpoint(), pem_of(key_of(9)));
  const grpc::Status status = known.call(pair, wire::call_path, good_hello(), large);
  QVERIFY2(status.ok(), status.error_message().c_str());
}

void TestRefusals::oversized() {
  GrpcPair pair;
  bool heard = false;
  pair.service.call = [&](const net::Caller&, net::Method, const Bytes&, const net::Respond& respond) {
    heard = true;
    respond(Bytes());
  };
  pair.ranks_of_b.set_members({{crypto::node_id(key_of(9).public_key()), net::PeerRank::Known}});
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  const grpc::Status status = client.call(pair, wire::call_path, good_hello(), 5u << 20);
  QCOMPARE(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  QVERIFY(!heard);
  QVERIFY(pair.run_until([&] { return pair.refusals_b.of(net::Refusal::TooLarge) == 1; }));
  QTRY_COMPARE(pair.conduct_b.faults(net::Fault::Oversized), std::uint64_t{1});
  QCOMPARE(client.call(pair, wire::call_path, good_hello(), 4u << 20).error_code(), grpc::StatusCode::OK);
  QVERIFY(heard);
}

// Slow-loris: part of a TLS record, then nothing.
void TestRefusals::slow_hello() {
  GrpcPair pair;
  rpc::RpcOptions options;
  options.hello = hello_of_network(7);
  options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
  options.limits.listener.patience = std::chrono::milliseconds(300);
  net::RefusalCounts refusals;
  const auto key = key_of(5);
  const auto node =
      rpc::make_grpc_transport({key, pair.executor_, pair.clock_, pair.bans_b, refusals}, options).value();
  QTcpSocket silent, slow;
  for (QTcpSocket* socket : {&silent, &slow}) {
    socket->connectToHost("127.0.0.1", node->endpoint().port);
    QVERIFY(socket->waitForConnected());
  }
  slow.write(QByteArray("\x16\x03\x01\x02\x00\x01", 6));
  QTRY_COMPARE_WITH_TIMEOUT(silent.state(), QAbstractSocket::UnconnectedState, 10'000);
  QTRY_COMPARE_WITH_TIMEOUT(slow.state(), QAbstractSocket::UnconnectedState, 10'000);
  QCOMPARE(refusals.of(net::Refusal::TooSlow), 2u);
}

// With a certificate and a hello, but the request never comes.
void TestRefusals::slow_request() {
  GrpcPair pair;
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  SilentCall silent;
  silent.begin(client);
  QVERIFY(pair.run_until([&] { return silent.done.load(); }));
  QCOMPARE(silent.result.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  pair.executor_.run_for(std::chrono::milliseconds(100));
  QCOMPARE(pair.refusals_b.of(net::Refusal::TooSlow), 1u);
  QCOMPARE(pair.refusals_b.of(net::Refusal::TooLarge), 0u);
}

void TestRefusals::one_address_has_its_share() {
  GrpcPair pair;
  std::vector<std::unique_ptr<Client>> clients;
  int fine = 0;
  for (std::uint8_t i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<Client>(pair.answering().endpoint(), pem_of(key_of(20 + i))));
    fine += clients.back()->call(pair, wire::call_path, good_hello(), 1).ok();
  }
  QCOMPARE(fine, 8);
  QVERIFY(pair.refusals_b.of(net::Refusal::TooManyOfAddress) >= 4);
}

void TestRefusals::five_hundred_connections() {
  GrpcPair pair;
  const auto honest = pair.connect();
  QVERIFY(honest);
  QVERIFY(served(pair, *honest));
  const std::size_t before = resident_bytes();
  const std::uint16_t port = pair.answering().endpoint().port;
  std::vector<std::unique_ptr<QTcpSocket>> sockets;
  std::size_t most_open = 0;
  for (int i = 0; i < 500; ++i) {
    auto socket = std::make_unique<QTcpSocket>();
    socket->bind(QHostAddress(0x7f000002u + static_cast<quint32>(i % 5)));
    socket->connectToHost("127.0.0.1", port);
    QVERIFY(socket->waitForConnected());
    if (i % 3 == 0) socket->write("\x16\x03\x01\x02\x00", 5);  // the head of a record
    if (i % 3 == 1) socket->write(QByteArray(64, char(i)));    // garbage
    socket->flush();
    sockets.push_back(std::move(socket));
    most_open = std::max(most_open, pair.answering().open_connections());
    if (i % 100 == 0) QVERIFY(served(pair, *honest));
  }
  QVERIFY(served(pair, *honest));
  const auto second = pair.connect();  // a new one finds its way in
  QVERIFY2(second, pair.error.describe().c_str());
  QVERIFY(served(pair, *second));
  QVERIFY2(most_open <= 128 + 16, QByteArray::number(qulonglong(most_open)));
  QVERIFY(pair.refusals_b.of(net::Refusal::NotTls) >= 100);
  QVERIFY(pair.refusals_b.of(net::Refusal::TooManyConnections) >= 100);
  const std::size_t after = resident_bytes();
  QVERIFY2(after < before + most_growth, QByteArray::number(qulonglong(after - before)));
}

NS_TEST(TestRefusals)
#include "test_refusals.moc"
