// A member that keeps records alive in the table, on the simulated world: they are renewed in time, a few at
// once, and what nobody takes is not offered again and again.
#include <QtTest>
#include <deque>

#include "core/dht/dht_node.h"
#include "core/dht/messages.h"
#include "core/sim/network.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

using neuroshard::test::minute;
using neuroshard::test::second;

struct Member {
  Member(sim::World& world, sim::Network& network, std::uint8_t number, const DhtConfig& config)
      : executor(world), key(crypto::KeyPair::from_seed(seed_of(number))) {
    contact = {crypto::node_id(key.public_key()), {platform::IpAddress::v4(10, 0, 0, number), 9000}};
    host = network.add(
        contact.id, contact.endpoint, sim::Nat::None,
        [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond) {
          stores += method == net::Method::DhtStore;
          node->handle(from, method, request, respond);
        });
    node = std::make_unique<DhtNode>(Hash256{}, config,
                                     DhtServices{key, network.caller(host), executor, world.clock()}, number);
  }
  static Hash256 seed_of(std::uint8_t number) {
    Hash256 seed{};
    seed.fill(number);
    return seed;
  }
  sim::HostExecutor executor;
  crypto::KeyPair key;
  net::Contact contact;
  sim::Host host = 0;
  std::uint64_t stores = 0;  // records that others brought
  std::unique_ptr<DhtNode> node;
};

struct Table {
  explicit Table(std::uint8_t count, StoreLimits store = {}) {
    DhtConfig config;
    config.member_port = 9000;
    config.one_lan = true;
    config.store = store;
    for (std::uint8_t i = 0; i < count; ++i)
      members.emplace_back(world, network, static_cast<std::uint8_t>(i + 1), config);
    for (Member& member : members) member.node->join({members.front().contact}, [](std::size_t) {});
    world.run_for(minute);
  }
  ~Table() {
    for (Member& member : members) {
      network.set_handler(member.host, nullptr);
      member.node.reset();
    }
  }
  std::uint64_t stores() const {
    std::uint64_t sum = 0;
    for (const Member& member : members) sum += member.stores;
    return sum;
  }
  std::size_t found(std::size_t by, const std::string& path) {
    std::optional<std::size_t> count;
    members[by].node->get(path, [&](const Expected<LookupResult>& result) {
      count = result.ok() ? result->records.size() : 0;
    });
    world.run_until([&] { return count.has_value(); }, world.now() + minute);
    return count.value_or(0);
  }
  sim::World world;
  sim::Network network{world, {}, 3};
  std::deque<Member> members;
};

void ignore(const Expected<Published>&) {}

}  // namespace

class TestPublishing : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_was_published_together_is_renewed_in_turns();
  void who_finds_a_key_full_asks_less_and_less_often();
  void what_nobody_could_take_is_soon_there();
  void what_wall_time_made_old_is_published_again();
  void a_record_that_expires_before_all_time_is_refused();
};

void TestPublishing::what_was_published_together_is_renewed_in_turns() {
  Table table(5);
  const auto path = [](int i) { return "/shards/" + std::to_string(i); };
  for (int i = 0; i < 50; ++i) table.members[0].node->publish(path(i), Bytes{1}, ignore);
  table.world.run_for(25 * minute);
  const std::uint64_t before = table.stores();
  QCOMPARE(before, std::uint64_t{50 * 4});
  std::uint64_t most = 0;
  for (int i = 0; i < 15 * 6; ++i) {
    const std::uint64_t start = table.stores();
    table.world.run_for(10 * second);
    most = std::max(most, table.stores() - start);
  }
  QCOMPARE(table.stores() - before, std::uint64_t{50 * 4});  // all, once
  QVERIFY2(most <= 20 * 4, std::to_string(most).c_str());
  table.world.run_for(3 * std::chrono::hours(1));
  for (int i = 0; i < 50; ++i) QCOMPARE(table.found(4, path(i)), std::size_t{1});
}

void TestPublishing::who_finds_a_key_full_asks_less_and_less_often() {
  StoreLimits few;
  few.publishers_per_key = 2;
  Table table(8, few);
  for (Member& member : table.members) member.node->publish("/layers/0", {}, ignore);
  table.world.run_for(2 * minute);
  QVERIFY(table.found(0, "/layers/0") >= 2);
  table.world.run_for(2 * std::chrono::hours(1));
  const std::uint64_t before = table.stores();
  table.world.run_for(std::chrono::hours(1));
  // Each of eight offers its record to seven others, twice or three times an hour.
  const std::uint64_t offered = table.stores() - before;
  QVERIFY2(offered <= 8 * 7 * 3, std::to_string(offered).c_str());
}

void TestPublishing::what_nobody_could_take_is_soon_there() {
  Table table(4);
  Member& one = table.members[0];
  table.network.set_online(one.host, false);
  one.node->publish("/layers/3", {}, ignore);
  table.world.run_for(minute);
  table.network.set_online(one.host, true);
  table.world.run_for(4 * minute);
  QCOMPARE(table.found(2, "/layers/3"), std::size_t{1});
}

// After a suspend or a change of the clock, the monotonic time says that the record is young.
void TestPublishing::what_wall_time_made_old_is_published_again() {
  Table table(4);
  table.members[0].node->publish("/layers/3", {}, ignore);
  table.world.run_for(minute);
  QCOMPARE(table.found(2, "/layers/3"), std::size_t{1});
  table.world.jump_wall(std::chrono::hours(2));
  table.world.run_for(2 * minute);
  QCOMPARE(table.found(2, "/layers/3"), std::size_t{1});
  // Back: members refuse a record that claims to live for more than a day.
  table.world.jump_wall(-std::chrono::hours(30));
  table.world.run_for(2 * minute);
  QCOMPARE(table.found(2, "/layers/3"), std::size_t{1});
  const std::uint64_t before = table.stores();
  table.world.run_for(20 * minute);
  QCOMPARE(table.stores(), before);  // once is enough
}

// The time is the sender's choice.
void TestPublishing::a_record_that_expires_before_all_time_is_refused() {
  Table table(2);
  Member& sender = table.members[1];
  Request request{9000, {}, make_record(sender.key, {}, "/layers/3", {}, 1, WallTime::min()).value()};
  std::optional<Expected<Bytes>> answer;
  table.network.caller(sender.host)
      .call(table.members[0].contact, net::Method::DhtStore, encode_request(net::Method::DhtStore, request),
            10 * second, [&](Expected<Bytes> given) { answer = std::move(given); });
  table.world.run_for(minute);
  QVERIFY(answer.has_value());
  QVERIFY(!answer->ok());
  QCOMPARE(table.found(1, "/layers/3"), std::size_t{0});
}

NS_TEST(TestPublishing)
#include "test_publishing.moc"
