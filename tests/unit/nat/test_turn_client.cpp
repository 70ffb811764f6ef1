// The TURN client against a real coturn on the loopback interface.
#include <QtTest>

#include "core/nat/turn_client.h"
#include "tests/support/loopback_coturn.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using Coturn = neuroshard::testing::LoopbackCoturn;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpSocket;

namespace {

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
constexpr Duration generous = std::chrono::seconds(20);

}  // namespace

class TestTurnClient : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void a_peer_reaches_the_relayed_address();
  void the_relayed_address_reaches_a_peer();
  void a_peer_without_permission_is_not_let_in();
  void who_is_let_in_no_more_keeps_its_connection();
  void a_wrong_password_is_refused();
  void renewing_and_releasing();
  void what_is_no_turn_server_is_said_so();

 private:
  Expected<TurnClient> allocate() {
    return TurnClient::allocate(io_, {server_, "nsd", "secret"}, io_.now() + generous);
  }
  Expected<void> talk(TcpSocket& from, TcpSocket& to) {
    const std::string words(50'000, 'w');
    NS_RETURN_IF_ERROR(write_until(io_, from, as_bytes(words), io_.now() + generous));
    std::string got(words.size(), '\0');
    NS_RETURN_IF_ERROR(
        read_all_until(io_, to, MutableByteSpan(reinterpret_cast<std::uint8_t*>(got.data()), got.size()),
                       io_.now() + generous));
    if (got != words) return make_error(ErrorCode::Corrupt, "other bytes came");
    return {};
  }

  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Io io_{clock_, entropy_, {}};
  std::unique_ptr<Coturn> coturn_;
  Endpoint server_;
};

void TestTurnClient::initTestCase() {
  if (const QString why_not = Coturn::missing(); !why_not.isEmpty()) QSKIP(qPrintable(why_not));
  coturn_ = std::make_unique<Coturn>();
  QVERIFY(coturn_->start());
  server_ = coturn_->endpoint;
}

void TestTurnClient::cleanupTestCase() {
  coturn_.reset();
}

void TestTurnClient::a_peer_reaches_the_relayed_address() {
  auto turn = allocate();
  QVERIFY2(turn.ok(), turn.ok() ? "" : turn.error().message.c_str());
  QVERIFY(turn->relayed().ip == loopback && turn->relayed().port != 0);
  QVERIFY(turn->outside().ip == loopback);
  const auto permitted = turn->permit(io_, {&loopback, 1}, io_.now() + generous);
  QVERIFY2(permitted.ok(), permitted.ok() ? "" : permitted.error().message.c_str());
  for (int i = 0; i < 2; ++i) {
    auto peer = dial_until(io_, turn->relayed(), {}, io_.now() + generous);
    QVERIFY2(peer.ok(), peer.ok() ? "" : peer.error().message.c_str());
    auto call = turn->next(io_, io_.now() + generous);
    QVERIFY2(call.ok() && call->has_value(), call.ok() ? "no call came" : call.error().message.c_str());
    QVERIFY((*call)->peer == peer->local().value());
    QVERIFY(talk(*peer, (*call)->socket).ok());
    QVERIFY(talk((*call)->socket, *peer).ok());
  }
  const auto nobody = turn->next(io_, io_.now());
  QVERIFY(nobody.ok() && !nobody->has_value());
}

void TestTurnClient::the_relayed_address_reaches_a_peer() {
  auto turn = allocate();
  QVERIFY(turn.ok() && turn->permit(io_, {&loopback, 1}, io_.now() + generous).ok());
  auto listener = platform::TcpListener::open({loopback, 0});
  auto out = turn->connect(io_, listener->local().value(), io_.now() + generous);
  QVERIFY2(out.ok(), out.ok() ? "" : out.error().message.c_str());
  auto accepted = listener->accept();
  QVERIFY(accepted.ok() && accepted->has_value());
  QVERIFY((*accepted)->from.port == turn->relayed().port);
  QVERIFY(talk(*out, (*accepted)->socket).ok());
  QVERIFY(talk((*accepted)->socket, *out).ok());
}

void TestTurnClient::a_peer_without_permission_is_not_let_in() {
  auto turn = allocate();
  QVERIFY(turn.ok());
  auto peer = dial_until(io_, turn->relayed(), {}, io_.now() + generous);
  if (peer.ok()) {
    std::array<std::uint8_t, 1> byte{};
    const auto got = read_until(io_, *peer, byte, io_.now() + generous);
    QVERIFY(!got.ok() && got.error().code != ErrorCode::Timeout);  // closed, not just silent
  }
  const auto call = turn->next(io_, io_.now() + std::chrono::milliseconds(200));
  QVERIFY(call.ok() && !call->has_value());
}

void TestTurnClient::who_is_let_in_no_more_keeps_its_connection() {
  Coturn forgetful({"--permission-lifetime=1"});  // seconds
  QVERIFY(forgetful.start());
  auto turn = TurnClient::allocate(io_, {forgetful.endpoint, "nsd", "secret"}, io_.now() + generous);
  QVERIFY(turn.ok() && turn->permit(io_, {&loopback, 1}, io_.now() + generous).ok());
  auto peer = dial_until(io_, turn->relayed(), {}, io_.now() + generous);
  auto call = turn->next(io_, io_.now() + generous);
  QVERIFY(peer.ok() && call.ok() && call->has_value());
  const auto gets_in = [&] {
    const auto another = dial_until(io_, turn->relayed(), {}, io_.now() + generous);
    const auto came = turn->next(io_, io_.now() + std::chrono::milliseconds(200));
    return another.ok() && came.ok() && came->has_value();
  };
  QTRY_VERIFY_WITH_TIMEOUT(!gets_in(), 30'000);
  QVERIFY(talk(*peer, (*call)->socket).ok());
  QVERIFY(talk((*call)->socket, *peer).ok());
}

void TestTurnClient::a_wrong_password_is_refused() {
  const auto turn = TurnClient::allocate(io_, {server_, "nsd", "guessed"}, io_.now() + generous);
  QVERIFY(!turn.ok());
  QCOMPARE(turn.error().code, ErrorCode::Denied);
  QVERIFY(turn.error().message.find("guessed") == std::string::npos);
}

void TestTurnClient::renewing_and_releasing() {
  auto turn = allocate();
  QVERIFY(turn.ok() && turn->permit(io_, {&loopback, 1}, io_.now() + generous).ok());
  const Duration left = turn->next_renewal() - io_.now();
  QVERIFY(left > std::chrono::seconds(100) && left <= TurnClient::permission_time / 2);
  ManualClock later;  // far beyond both
  later.advance(clock_.monotonic_now().time_since_epoch() + std::chrono::hours(1));
  const Io future{later, entropy_, {}};
  const auto renewed = turn->renew(future, future.now() + generous);
  QVERIFY2(renewed.ok(), renewed.ok() ? "" : renewed.error().message.c_str());
  QVERIFY(turn->next_renewal() > future.now());
  const Endpoint relayed = turn->relayed();
  QVERIFY(turn->release(io_, io_.now() + generous).ok());
  QTRY_VERIFY_WITH_TIMEOUT(!dial_until(io_, relayed, {}, io_.now() + std::chrono::seconds(1)).ok(), 20'000);
}

void TestTurnClient::what_is_no_turn_server_is_said_so() {
  auto listener = platform::TcpListener::open({loopback, 0});
  const auto silent = TurnClient::allocate(io_, {listener->local().value(), "nsd", "secret"},
                                           io_.now() + std::chrono::milliseconds(200));
  QCOMPARE(silent.error().code, ErrorCode::Timeout);
  const Endpoint nobody = listener->local().value();
  listener = platform::TcpListener();
  const auto away = TurnClient::allocate(io_, {nobody, "nsd", "secret"}, io_.now() + generous);
  QCOMPARE(away.error().code, ErrorCode::Unavailable);
}

NS_TEST(TestTurnClient)
#include "test_turn_client.moc"
