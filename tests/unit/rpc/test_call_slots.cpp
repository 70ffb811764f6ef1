// One address that opens all the calls that it can and sends no request: who else is answered meanwhile.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rpc/free_client.h"

using namespace neuroshard;
using namespace neuroshard::testing;

namespace {

constexpr std::size_t keys = 8, calls_of_key = 32;

struct Attack {
  explicit Attack(GrpcPair& pair) {
    for (std::size_t key = 0; key < keys; ++key) {
      clients.push_back(std::make_unique<Client>(pair.answering().endpoint(),
                                                 pem_of(key_of(static_cast<std::uint8_t>(20 + key)))));
      for (std::size_t i = 0; i < calls_of_key; ++i) {
        calls.push_back(std::make_unique<SilentCall>());
        calls.back()->begin(*clients.back());
      }
    }
  }
  ~Attack() {
    for (const auto& call : calls) call->context.TryCancel();
    for (const auto& call : calls)
      while (!call->done) QTest::qWait(1);
  }
  std::size_t refused() const {
    return static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [](const auto& call) { return call->done.load(); }));
  }
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<SilentCall>> calls;
};

// A call whose answer is never read.
struct UnreadCall final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  void begin(Client& client) {
    context.AddMetadata(wire::hello_key, good_hello());
    client.stub->PrepareBidiStreamingCall(&context, wire::call_path, {}, this);
    peer::v1::CallRequest message;
    message.set_method(60'000);
    message.set_body("x");
    request = wire::to_buffer(message);
    StartWriteLast(&request, {});
    StartCall();
  }
  void OnDone(const grpc::Status& status) override {
    result = status;
    done = true;
  }
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::Status result;
  std::atomic<bool> done{false};
};

struct UnreadCalls {
  UnreadCalls(Client& client, int count) {
    for (int i = 0; i < count; ++i) calls.push_back(std::make_unique<UnreadCall>());
    for (const auto& call : calls) call->begin(client);
  }
  ~UnreadCalls() {
    for (const auto& call : calls) call->context.TryCancel();
    while (!done()) QTest::qWait(1);
  }
  bool done() const {
    return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call->done.load(); });
  }
  std::vector<std::unique_ptr<UnreadCall>> calls;
};

rpc::RpcLimits attacked() {
  rpc::RpcLimits limits;
  limits.listener.free_loopback = true;
  limits.message_patience = std::chrono::seconds(60);  // the attack lasts
  return limits;
}

}  // namespace

class TestCallSlots : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void calls_without_a_request_data();
  void calls_without_a_request();
  void a_late_request_keeps_its_place();
  void answers_that_nobody_reads();
};

void TestCallSlots::calls_without_a_request_data() {
  QTest::addColumn<bool>("reserves");
  QTest::addColumn<int>("least");
  QTest::addColumn<int>("most");
  QTest::newRow("places are kept for members") << true << 20 << 20;
  QTest::newRow("control: one pool for all") << false << 0 << 0;
}

void TestCallSlots::calls_without_a_request() {
  QFETCH(bool, reserves);
  QFETCH(int, least);
  QFETCH(int, most);
  rpc::RpcLimits limits = attacked();
  if (!reserves) limits.arriving = {keys * calls_of_key, calls_of_key, 0, 0, 0};
  GrpcPair pair(limits);
  const auto member_key = key_of(9);
  pair.ranks_of_b.set_members({{crypto::node_id(member_key.public_key()), net::PeerRank::Known}});
  Client member(pair.answering().endpoint(), pem_of(member_key));
  QVERIFY(member.call(pair, wire::call_path, good_hello(), 10).ok());
  Attack attack(pair);
  const std::size_t places = reserves ? rpc::RpcLimits().arriving.per_group : keys * calls_of_key;
  // All that can be open is open once the others have been refused.
  pair.run_until([&] { return attack.refused() >= attack.calls.size() - places; });
  QTest::qWait(300);
  int served = 0;
  for (int i = 0; i < 20; ++i) served += member.call(pair, wire::call_path, good_hello(), 10).ok();
  qInfo("%zu of %zu calls refused, the member's calls answered: %d of 20", attack.refused(),
        attack.calls.size(), served);
  QVERIFY2(served >= least && served <= most, qPrintable(QString::number(served)));
}

// A stranger whose requests time out has ever fewer places.
void TestCallSlots::a_late_request_keeps_its_place() {
  rpc::RpcLimits limits = attacked();
  limits.message_patience = std::chrono::milliseconds(300);
  limits.arriving = {512, 4, 64, 0, 0};
  limits.late_request = std::chrono::seconds(2);
  GrpcPair pair(limits);
  Client client(pair.answering().endpoint(), pem_of(key_of(9)));
  std::vector<std::unique_ptr<SilentCall>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::make_unique<SilentCall>());
    calls.back()->begin(client);
  }
  QVERIFY(pair.run_until([&] {
    return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call->done.load(); });
  }));
  QCOMPARE(client.call(pair, wire::call_path, good_hello(), 10).error_code(),
           grpc::StatusCode::RESOURCE_EXHAUSTED);
  Client other(pair.answering().endpoint(), pem_of(key_of(10)));
  QVERIFY(other.call(pair, wire::call_path, good_hello(), 10).ok());
  const MonotonicTime begun = pair.clock_.monotonic_now();
  QVERIFY(
      pair.run_until([&] { return pair.clock_.monotonic_now() - begun > std::chrono::milliseconds(2500); }));
  QVERIFY(client.call(pair, wire::call_path, good_hello(), 10).ok());
}

// gRPC keeps an answer until the caller's window is open.
void TestCallSlots::answers_that_nobody_reads() {
  constexpr std::size_t answer_bytes = 128u << 10;
  rpc::RpcLimits limits = attacked();
  limits.leaving = {16 * answer_bytes, 4 * answer_bytes, 8 * answer_bytes, 0, 0};
  limits.answer_patience = std::chrono::seconds(1);
  GrpcPair pair(limits);
  int served = 0;
  pair.service.call = [&](const net::Caller&, net::Method, Bytes, net::Respond respond) {
    ++served;
    respond(Bytes(answer_bytes, 'x'));
  };
  Client client(pair.answering().endpoint(), pem_of(key_of(9)), /*small_window=*/true);
  UnreadCalls calls(client, 4);
  QVERIFY(pair.run_until([&] { return served == 4; }));
  QCOMPARE(client.call(pair, wire::call_path, good_hello(), 10).error_code(),
           grpc::StatusCode::RESOURCE_EXHAUSTED);
  Client other(pair.answering().endpoint(), pem_of(key_of(10)));
  QVERIFY(other.call(pair, wire::call_path, good_hello(), 10).ok());
  QVERIFY(pair.run_until([&] { return pair.refusals_b.of(net::Refusal::TooSlow) == 4; }));
  pair.executor_.run_for(std::chrono::milliseconds(300));
  QVERIFY(client.call(pair, wire::call_path, good_hello(), 10).ok());
}

NS_TEST(TestCallSlots)
#include "test_call_slots.moc"
