// A callee at relays that do not do as they should.
#include <QtTest>
#include <array>
#include <thread>

#include "core/nat/relay_client.h"
#include "tests/support/test_main.h"
#include "tests/unit/nat/relay_fixture.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::TcpListener;
using platform::TcpSocket;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::generous;
using testing::loopback;

namespace {

// A relay on a thread of its own that gives each head the same answer, and then sends PING without a pause
// for two seconds.
class WrongRelay {
 public:
  explicit WrongRelay(std::string answer)
      : answer_(std::move(answer)), listener_(std::move(*TcpListener::open({loopback, 0}))) {
    endpoint = listener_.local().value();
    thread_ = std::thread([this] {
      while (!io_.cancel.cancelled()) serve();
    });
  }
  ~WrongRelay() {
    source_.cancel();
    thread_.join();
  }
  Endpoint endpoint;

 private:
  void serve() {
    auto accepted = listener_.accept();
    if (!accepted.ok() || !accepted->has_value())
      return static_cast<void>(wait_until(io_, {}, io_.now() + milliseconds(5)));
    TcpSocket socket = std::move((*accepted)->socket);
    std::array<std::uint8_t, 4096> buffer{};
    const MonotonicTime end = io_.now() + seconds(2);
    if (!read_until(io_, socket, buffer, end).ok()) return;
    if (!write_until(io_, socket, as_bytes(answer_), end).ok()) return;
    while (io_.now() < end)  // and takes what it is answered
      if (!write_until(io_, socket, as_bytes(std::string_view("PING\r\n")), end).ok() ||
          !socket.read_some(buffer).ok())
        return;
  }
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  CancelSource source_;
  Io io_{clock_, entropy_, source_.token()};
  const std::string answer_;
  TcpListener listener_;
  std::thread thread_;
};

}  // namespace

class TestRelayClient : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_reason_of_a_refusal_is_text();
  void a_relay_that_only_sends_ping_is_left();

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Io io_{clock_, entropy_, {}};
};

void TestRelayClient::the_reason_of_a_refusal_is_text() {
  WrongRelay relay("HTTP/1.1 403 \xFF\xC2\x9Bno\r\n\r\n");
  const auto joined = RelayCallee::join(io_, relay.endpoint, {}, io_.now() + generous);
  QVERIFY(!joined.ok());
  QCOMPARE(joined.error().message, std::string("the relay refuses: \xEF\xBF\xBD no (403)"));
}

void TestRelayClient::a_relay_that_only_sends_ping_is_left() {
  WrongRelay relay("HTTP/1.1 200 Joined\r\n\r\n");
  auto callee = RelayCallee::join(io_, relay.endpoint, {}, io_.now() + generous);
  QVERIFY2(callee.ok(), callee.ok() ? "" : callee.error().message.c_str());
  const auto call = callee->next(io_, io_.now() + generous);
  QVERIFY(!call.ok());
  QCOMPARE(call.error().code, ErrorCode::Unavailable);
  QVERIFY2(call.error().message.find("too often") != std::string::npos, call.error().message.c_str());
}

NS_TEST(TestRelayClient)
#include "test_relay_client.moc"
