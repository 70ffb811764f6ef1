// Requests that reach a member of the table through the node's methods, which limit them by the caller's
// rank, and what the answers to its own requests prove.
#include <QtTest>
#include <algorithm>

#include "core/dht/dht_node.h"
#include "core/dht/messages.h"
#include "core/sim/network.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

net::Caller caller(std::uint8_t number) {
  net::Caller from;
  from.id.fill(number);
  from.endpoint = {platform::IpAddress::v4(11, number, 1, 1), 9000};
  return from;
}

// Answers all calls alike, by a path that the test chooses.
class OnePath final : public net::PeerCaller {
 public:
  explicit OnePath(Executor& executor) : executor_(executor) {}
  void call(const net::Contact& contact, net::Method method, Bytes, Duration, net::CallDone done) override {
    called.push_back(contact);
    Expected<Bytes> answer =
        method == net::Method::DhtPing ? encode_endpoint({}) : encode_found(method, {}, {});
    if (refusal) answer = make_error(*refusal, "not now");
    static_cast<void>(executor_.post([answer = std::move(answer), done = std::move(done)] { done(answer); }));
  }
  net::CallPath path_to(const net::Contact&) const override { return path; }

  net::CallPath path = net::CallPath::There;
  std::optional<ErrorCode> refusal;
  std::vector<net::Contact> called;

 private:
  Executor& executor_;
};

}  // namespace

class TestDhtRequests : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void strangers_do_not_use_up_what_a_member_may_ask();
  void only_an_answer_from_there_proves_an_address();
  void times_that_no_clock_has_are_no_fault();
  void a_join_by_a_stranger_replaces_no_given_contact();
};

void TestDhtRequests::strangers_do_not_use_up_what_a_member_may_ask() {
  sim::World world;
  sim::Network network(world, {}, 3);
  sim::HostExecutor executor(world);
  const crypto::KeyPair key = test::key_numbered(1);
  const platform::Endpoint endpoint{platform::IpAddress::v4(10, 0, 0, 1), 9000};
  const sim::Host host = network.add(crypto::node_id(key.public_key()), endpoint, sim::Nat::None,
                                     [](const net::Caller&, net::Method, ByteSpan, const net::Respond&) {});
  DhtConfig config;
  config.member_port = 9000;
  DhtNode node({}, config, {key, network.caller(host), executor, world.clock()}, 1);

  constexpr std::uint8_t member = 250, late = 251;
  net::PeerRanks ranks;
  ranks.set_members({{caller(member).id, net::PeerRank::Voter}});
  net::BanList bans(world.clock());
  net::Conduct conduct(bans, world.clock(), false);
  net::MethodTable methods(world.clock(), &conduct, &ranks);
  const net::RequestLimits limits{
      .per_second = 20, .burst = 100, .bytes_per_second = 1e9, .bytes_burst = 1e9};
  const auto serving = methods.add(
      {net::Method::DhtPing}, net::MethodLimits(std::make_shared<net::RequestLimiter>(limits, false, 1)),
      [&node](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
        node.handle(from, method, request, reply);
      });
  const auto answered = [&](std::uint8_t who) {
    bool ok = false;
    methods.on_call(caller(who), net::Method::DhtPing, encode_request(net::Method::DhtPing, {}),
                    [&ok](const Expected<Bytes>& answer) { ok = answer.ok(); });
    return ok;
  };

  // Many strangers take all that strangers may ask for together.
  for (std::uint8_t who = 1; who <= 200; ++who)
    for (int i = 0; i < 100; ++i) answered(who);
  QVERIFY(!answered(late));
  const std::uint64_t floods = conduct.faults(net::Fault::Flood);
  for (int i = 0; i < 50; ++i) QVERIFY(answered(member));
  QCOMPARE(conduct.faults(net::Fault::Flood), floods);
  QCOMPARE(conduct.points(caller(member).id), 0.0);
  executor.stop();
}

// Others name a member with a victim's address. This node has a connection with the member, or none and asks
// the victim.
void TestDhtRequests::only_an_answer_from_there_proves_an_address() {
  sim::World world;
  sim::HostExecutor executor(world);
  const crypto::KeyPair key = test::key_numbered(1);
  OnePath calls(executor);
  const auto known_after = [&](net::CallPath path, std::optional<ErrorCode> refusal = std::nullopt) {
    calls.path = path;
    calls.refusal = refusal;
    DhtConfig config;
    config.member_port = 9000;
    DhtNode node({}, config, {key, calls, executor, world.clock()}, 1);
    node.join({net::Contact{caller(2).id, caller(2).endpoint}}, [](std::size_t) {});
    world.run_for(test::second);
    return node.table().size();
  };
  using net::CallPath;
  QCOMPARE(known_after(CallPath::There), std::size_t{1});
  QCOMPARE(known_after(CallPath::Elsewhere), std::size_t{0});
  // A member's refusal shows that it is there; one of this node, or of a node with another id, does not.
  QCOMPARE(known_after(CallPath::There, ErrorCode::Denied), std::size_t{1});
  QCOMPARE(known_after(CallPath::None, ErrorCode::Denied), std::size_t{0});
  QCOMPARE(known_after(CallPath::None, ErrorCode::Exhausted), std::size_t{0});
  executor.stop();
}

// A record may name any time. A wrong clock is no fault of its publisher, a wrong signature is one.
void TestDhtRequests::times_that_no_clock_has_are_no_fault() {
  sim::World world;
  sim::HostExecutor executor(world);
  const crypto::KeyPair key = test::key_numbered(1), publisher = test::key_numbered(2);
  OnePath calls(executor);
  DhtConfig config;
  config.member_port = 9000;
  DhtNode node({}, config, {key, calls, executor, world.clock()}, 1);
  net::Caller from = caller(2);
  from.id = crypto::node_id(publisher.public_key());
  const auto stored = [&](const Record& record) {
    std::optional<net::Answer> answer;
    node.handle(from, net::Method::DhtStore, encode_request(net::Method::DhtStore, {0, {}, record}),
                [&answer](net::Answer given) { answer = std::move(given); });
    return *answer;
  };
  for (const WallTime expires : {WallTime::min(), WallTime::max()}) {
    Record record = make_record(publisher, {}, "/layers/1", {}, 1, expires).value();
    const net::Answer refused = stored(record);
    QCOMPARE(refused.with.error().code, ErrorCode::Denied);
    QVERIFY(!refused.fault);
    record.signature[0] ^= 1;
    QCOMPARE(stored(record).fault, std::optional(net::Fault::BadSignature));
  }
  executor.stop();
}

// A stranger introduces itself while the first contacts are away.
void TestDhtRequests::a_join_by_a_stranger_replaces_no_given_contact() {
  sim::World world;
  sim::HostExecutor executor(world);
  const crypto::KeyPair key = test::key_numbered(1);
  OnePath calls(executor);
  calls.path = net::CallPath::None;
  calls.refusal = ErrorCode::Unavailable;
  const net::Contact given{caller(2).id, caller(2).endpoint}, stranger{caller(3).id, caller(3).endpoint};
  {
    DhtNode node({}, {}, {key, calls, executor, world.clock()}, 1);
    node.keep_given(given);
    node.join({given}, [](std::size_t) {});
    node.join({stranger}, [](std::size_t) {});
    world.run_for(test::second);
    calls.called.clear();
    world.run_for(120 * test::second);
  }
  for (const net::Contact& contact : {given, stranger})
    QVERIFY(std::find(calls.called.begin(), calls.called.end(), contact) != calls.called.end());
  executor.stop();
}

NS_TEST(TestDhtRequests)
#include "test_requests.moc"
