// Messages that are changed at random, to the handlers that a member has beside the chain: hash table, status, files
// and relays. Nothing may crash, each call has one answer, and honest members still reach each other.
#include <QtTest>

#include "core/chain/server.h"
#include "core/exchange/server.h"
#include "core/status/gossip.h"
#include "tests/sim/attacker.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;  // NOLINT
using test::Attacker;
using test::FuzzTarget;
using test::Message;
using test::MessagePool;

namespace {

// No limit keeps a changed message from its handler.
net::MethodLimits wide() {
  return net::MethodLimits(
      std::make_shared<net::RequestLimiter>(net::RequestLimits{1e6, 1e6, 16, 4}, true, 1));
}

// The methods of a member beside the chain, as a node registers them.
struct Services {
  explicit Services(test::Host& host, test::Village& village)
      : gossip({*host.key, host.member->caller(), host.executor, village.world.clock(),
                [&host](std::size_t most) { return host.member->some(most); }},
               test::network_id(), std::nullopt, {}, 1),
        content({host.executor, host.executor, village.world.clock(), files, logger}, {}) {
    auto& methods = host.member->methods();
    registrations.push_back(
        methods.add({net::Method::StatusPull}, wide(),
                    [this](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                      gossip.on_call(from, request, reply);
                    }));
    registrations.push_back(methods.add(
        {net::Method::ContentNamed, net::Method::ContentPieces, net::Method::ContentPiece}, wide(),
        [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
          content.on_call(from, method, request, reply);
        }));
    gossip.set_own({});
    gossip.start();
  }
  NullLogger logger;
  testing::MemoryFileEnv files;
  status::StatusGossip gossip;
  exchange::ContentServer content;
  std::vector<net::MethodTable::Registration> registrations;
};

// Records what a node is asked, and passes it on.
class RecordingService final : public net::PeerService {
 public:
  RecordingService(net::PeerService& node, MessagePool& pool) : node_(node), pool_(pool) {}
  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    pool_.learn(method, request);
    node_.on_call(from, method, std::move(request), std::move(respond));
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override {
    node_.on_stream(from, method, std::move(stream));
  }

 private:
  net::PeerService& node_;
  MessagePool& pool_;
};

class TestMemberFuzz : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_hold();
};

void TestMemberFuzz::members_hold() {
  const std::uint64_t seed = test::first_seed();
  MessagePool pool(test::network_id());
  test::Village village;
  test::Host& tracker = village.add({}, true);
  test::Host& first = village.add({&tracker});
  test::Host& second = village.add({&tracker});
  const std::vector<test::Host*> hosts = {&tracker, &first, &second};
  std::deque<Services> services;
  std::deque<RecordingService> recorders;
  for (test::Host* host : hosts) {
    services.emplace_back(*host, village);
    recorders.emplace_back(*host->member, pool);
    host->transport->serve(&recorders.back());
  }
  const Bytes file(600'000, 7);
  const exchange::ContentRef content{crypto::sha256(file), file.size()};
  QVERIFY(storage::write_file_atomic(services[1].files, "/file", file).ok());
  QVERIFY(services[1].content.offer(content, "/file"));
  services[1].content.set_name("manifest", {1, content, Bytes(64, 1)});
  pool.learn_hash(content.hash);
  village.world.run_for(std::chrono::seconds(60));

  Attacker attacker(pool, village.world.clock(), seed);
  test::Host* victim = &first;
  FuzzTarget target(
      [&](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
        victim->member->on_call(from, method, Bytes(request.begin(), request.end()),
                                [reply](Expected<Bytes> answer) { reply(std::move(answer)); });
      });
  const auto limit = test::times(20'000);
  while (target.calls() < limit && target.findings().empty()) {
    for (const Message& message : attacker.own_messages())
      if (!chain::ChainServer::handles(message.method) && message.method != net::Method::RoundPiece)
        pool.learn(message.method, message.request);
    for (int i = 0; i < 40; ++i) {
      victim = hosts[attacker.rng().below(hosts.size())];
      village.meant_to_be_banned.insert(attacker.from().id);
      const Message message = attacker.next().message;
      village.meant_to_be_banned.insert(attacker.from().id);
      target.call(attacker.from(), message);
    }
    village.world.run_for(std::chrono::milliseconds(200));
  }
  village.world.run_for(std::chrono::seconds(60));
  target.expect_answers();
  qInfo("%s", text_of(target, seed).c_str());
  QVERIFY2(target.findings().empty(), text_of(target, seed).c_str());
  // Honest members still hear each other.
  std::optional<Expected<Bytes>> answer;
  second.member->caller().call({first.id, first.endpoint}, net::Method::Ping, Bytes(4, 1),
                               std::chrono::seconds(5),
                               [&](Expected<Bytes> got) { answer = std::move(got); });
  QVERIFY(village.run_until([&] { return answer.has_value(); }, std::chrono::seconds(10)));
  QVERIFY2(answer->ok(), answer->ok() ? "" : answer->error().describe().c_str());
  for (Services& one : services) one.registrations.clear();
  for (test::Host* host : hosts) host->transport->serve(host->member.get());
}

}  // namespace

NS_TEST(TestMemberFuzz)
#include "test_member_fuzz.moc"
