// The calls with which a node catches up: strangers that announce blocks and then hang keep no member waiting, and
// blocks that wait for the person are not fetched all the time.
#include <QtTest>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/chain/sync.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

net::NodeId stranger(std::uint8_t number) {
  net::NodeId id;
  id.fill(number);
  return id;
}

// Answers nothing until the test says so.
struct HangingPeers final : net::PeerCaller, Peers {
  void call(const net::Contact& peer, net::Method method, Bytes, Duration, net::CallDone done) override {
    asked.emplace_back(peer.id, method);
    waiting.push_back(std::move(done));
  }
  std::optional<net::Contact> find(const net::NodeId& id) override {
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return contacts; }
  std::size_t calls(net::Method method) const {
    return static_cast<std::size_t>(
        std::count_if(asked.begin(), asked.end(), [&](const auto& call) { return call.second == method; }));
  }
  void fail_all() {
    for (const net::CallDone& done : std::exchange(waiting, {}))
      done(make_error(ErrorCode::Timeout, "no answer"));
  }
  std::vector<std::pair<net::NodeId, net::Method>> asked;
  std::vector<net::CallDone> waiting;
  std::vector<net::Contact> contacts;
};

struct Bench {
  static TrustAnchor trusts(const History& history) {
    TrustAnchor trust;
    trust.genesis = history.genesis();
    return trust;
  }
  void announces(const net::NodeId& id) { sync.catch_up_stranger({id, peers.find(id)->endpoint}); }
  std::size_t fetches() const { return peers.calls(net::Method::ChainBlocks); }
  std::size_t statuses() const { return peers.calls(net::Method::ChainStatus); }

  small::Chain chain{5};
  History history = chain.begin();
  HangingPeers peers;
  neuroshard::testing::ManualExecutor executor;
  ManualClock clock;
  StrangerFetches limits{clock, nullptr, 1};
  bool waits_for_person = false;
  ChainSync sync{chain.services(),
                 peers,
                 peers,
                 executor,
                 clock,
                 SyncOptions(),
                 trusts(history),
                 chain.parties[0].id,
                 1,
                 limits,
                 {[this] { return &history; }, [](const CertifiedBlock&) { return Expected<void>(); },
                  [](const History&) {}, [](const net::Contact&, const ChainStatus&) {},
                  [] { return StatusRequest(); }, [this] { return waits_for_person; }}};
};

}  // namespace

class TestSyncSlots : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // Planted: strangers and members that share the slots.
  void strangers_that_hang_keep_no_member_waiting() {
    Bench bench;
    for (std::uint8_t i = 1; i <= 4; ++i) bench.announces(stranger(i));
    QCOMPARE(bench.fetches(), std::size_t{1});
    QCOMPARE(bench.statuses(), std::size_t{1});
    for (std::size_t i = 1; i <= 3; ++i) {
      const net::NodeId& member = bench.chain.parties[i].id;
      bench.sync.catch_up(member);
      QVERIFY(bench.peers.asked.back() == std::pair(member, net::Method::ChainStatus));
    }
    QCOMPARE(bench.fetches(), std::size_t{4});
    bench.sync.catch_up(bench.chain.parties[4].id);  // members have three slots
    QCOMPARE(bench.fetches(), std::size_t{4});
  }

  void a_poll_asks_as_many_beside_a_stranger() {
    Bench bench;
    bench.announces(stranger(1));
    for (std::uint8_t i = 11; i <= 16; ++i) bench.peers.contacts.push_back(*bench.peers.find(stranger(i)));
    bench.sync.tick();
    QCOMPARE(bench.statuses(), 1 + SyncOptions().asked_at_once);
  }

  void a_strangers_word_that_was_nothing_does_not_count_for_a_minute() {
    Bench bench;
    bench.announces(stranger(1));
    bench.peers.fail_all();
    bench.announces(stranger(1));
    QCOMPARE(bench.fetches(), std::size_t{1});
    bench.announces(stranger(2));
    QCOMPARE(bench.fetches(), std::size_t{2});
    bench.peers.fail_all();
    bench.clock.advance(std::chrono::minutes(1));
    bench.announces(stranger(1));
    QCOMPARE(bench.fetches(), std::size_t{3});
  }

  void blocks_that_wait_for_the_person_are_fetched_once_a_minute() {
    Bench bench;
    bench.waits_for_person = true;
    const auto catch_up = [&] {
      for (std::size_t i = 1; i <= 3; ++i) {
        bench.sync.catch_up(bench.chain.parties[i].id);
        bench.peers.fail_all();
      }
    };
    catch_up();
    QCOMPARE(bench.fetches(), std::size_t{1});
    bench.clock.advance(std::chrono::minutes(1));
    catch_up();
    QCOMPARE(bench.fetches(), std::size_t{2});
    bench.waits_for_person = false;  // it has agreed
    catch_up();
    QCOMPARE(bench.fetches(), std::size_t{5});
  }
};

NS_TEST(TestSyncSlots)
#include "test_sync_slots.moc"
