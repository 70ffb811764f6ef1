// Requests that reach a member of the table through the node's methods, which limit them by the caller's
// rank.
#include <QtTest>

#include "core/dht/dht_node.h"
#include "core/dht/messages.h"
#include "core/sim/network.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

net::Caller caller(std::uint8_t number) {
  net::Caller from;
  from.id.fill(number);
  from.endpoint = {platform::IpAddress::v4(11, number, 1, 1), 9000};
  return from;
}

}  // namespace

class TestDhtRequests : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void strangers_do_not_use_up_what_a_member_may_ask();
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

NS_TEST(TestDhtRequests)
#include "test_requests.moc"
