// The holders of the model's slots, as the hash table lists them: members of the simulated world publish what
// they give, a few keys at a time, keep it alive, and stop.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

namespace {

std::vector<net::HeldSlot> model(std::uint16_t layers, std::uint16_t experts) {
  std::vector<net::HeldSlot> slots{{net::SlotKind::Embed, 0, 0}};
  for (std::uint16_t layer = 0; layer < layers; ++layer) slots.push_back({net::SlotKind::Layer, layer, 0});
  for (std::uint16_t layer = 0; layer < layers; ++layer)
    for (std::uint16_t expert = 0; expert < experts; ++expert)
      slots.push_back({net::SlotKind::Expert, layer, expert});
  slots.push_back({net::SlotKind::Head, 0, 0});
  return slots;
}

// A tracker and some nodes that know each other.
struct Found {
  explicit Found(int count) {
    Host& tracker = village.add({}, true);
    for (int i = 0; i < count; ++i) nodes.push_back(&village.add({&tracker}));
    village.world.run_for(5 * minute);
  }
  // Whom `by` finds under the path.
  std::set<net::NodeId> holders(Host& by, const std::string& path) {
    std::optional<Expected<dht::LookupResult>> result;
    by.member->table().get(path, [&](auto found) { result.emplace(std::move(found)); });
    if (!village.run_until([&] { return result.has_value(); }, minute) || !result->ok()) return {};
    std::set<net::NodeId> ids;
    for (const dht::Record& record : (*result)->records) ids.insert(crypto::node_id(record.publisher));
    return ids;
  }
  std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const Host* node : nodes) sum += node->member->table().counters().requests;
    return sum;
  }
  Village village;
  std::vector<Host*> nodes;
};

}  // namespace

class TestSlotKeys : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void holders_of_a_slot_are_found();
  void what_is_given_no_more_is_forgotten();
  void who_gives_nothing_is_not_named();
  void keys_are_published_a_few_at_a_time();
  void of_many_experts_each_node_takes_others();
};

void TestSlotKeys::holders_of_a_slot_are_found() {
  Found world(6);
  world.nodes[0]->member->set_capacity({1, 1, model(2, 3)});
  world.nodes[1]->member->set_capacity({1, 1, model(1, 1)});
  world.village.world.run_for(2 * minute);
  const net::NodeId first = world.nodes[0]->id, second = world.nodes[1]->id;
  QCOMPARE(world.holders(*world.nodes[4], "/layers/0"), (std::set{first, second}));
  QCOMPARE(world.holders(*world.nodes[4], "/layers/1"), std::set{first});
  QCOMPARE(world.holders(*world.nodes[0], "/experts/0/0"), (std::set{first, second}));
  QCOMPARE(world.holders(*world.nodes[5], "/experts/1/2"), std::set{first});
  QVERIFY(world.holders(*world.nodes[5], "/layers/2").empty());
  // Records live an hour, and are made anew before that.
  world.village.world.run_for(std::chrono::hours(2));
  QCOMPARE(world.holders(*world.nodes[5], "/experts/1/2"), std::set{first});
  // A node that left is not listed for longer than that.
  world.village.power_off(*world.nodes[0]);
  world.village.world.run_for(std::chrono::minutes(65));
  QCOMPARE(world.holders(*world.nodes[4], "/layers/0"), std::set{second});
}

void TestSlotKeys::what_is_given_no_more_is_forgotten() {
  Found world(4);
  Host& node = *world.nodes[0];
  node.member->set_capacity({1, 1, model(2, 0)});
  world.village.world.run_for(2 * minute);
  QVERIFY(world.holders(*world.nodes[3], "/layers/1").count(node.id) == 1);
  node.member->set_capacity({1, 1, model(1, 0)});  // a smaller model, or none
  world.village.world.run_for(std::chrono::minutes(65));
  QVERIFY(world.holders(*world.nodes[3], "/layers/1").empty());
  QCOMPARE(world.holders(*world.nodes[3], "/layers/0"), std::set{node.id});
}

void TestSlotKeys::who_gives_nothing_is_not_named() {
  Found world(4);
  world.nodes[0]->member->set_capacity({1, 1, model(1, 1), /*gives=*/false});
  world.village.world.run_for(5 * minute);
  QVERIFY(world.holders(*world.nodes[3], "/layers/0").empty());
}

void TestSlotKeys::keys_are_published_a_few_at_a_time() {
  Found world(4);
  Host& node = *world.nodes[0];
  world.village.world.run_for(minute);
  const std::uint64_t before = world.requests();
  node.member->set_capacity({1, 1, model(20, 8)});  // 180 keys
  std::uint64_t most = 0;
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t start = world.requests();
    world.village.world.run_for(10 * second);
    most = std::max(most, world.requests() - start);
  }
  // Three others: a look-up and a record each, for eight keys, and what else there is to say.
  QVERIFY2(most <= 100, std::to_string(most).c_str());
  QVERIFY(world.requests() - before >= 180 * 3);
  QCOMPARE(world.holders(*world.nodes[2], "/experts/19/7"), std::set{node.id});
  // Nor are they renewed all at once.
  most = 0;
  for (int i = 0; i < 6 * 60; ++i) {
    const std::uint64_t start = world.requests();
    world.village.world.run_for(10 * second);
    most = std::max(most, world.requests() - start);
  }
  QVERIFY2(most <= 200, std::to_string(most).c_str());
  QCOMPARE(world.holders(*world.nodes[2], "/experts/19/7"), std::set{node.id});
  for (const Host* other : world.nodes) QCOMPARE(other->conduct.faults(net::Fault::Flood), std::uint64_t{0});
}

void TestSlotKeys::of_many_experts_each_node_takes_others() {
  Found world(3);
  SlotKeys one(world.nodes[0]->id), other(world.nodes[1]->id);
  const auto all = model(4, 100);
  one.set(all);
  other.set(all);
  for (std::size_t i = 0; i <= SlotKeys::most / SlotKeys::at_a_time; ++i) {
    one.step(world.nodes[0]->member->table());
    other.step(world.nodes[1]->member->table());
    world.village.world.run_for(10 * second);
  }
  QCOMPARE(one.published().size(), SlotKeys::most);
  QCOMPARE(other.published().size(), SlotKeys::most);
  for (const char* layer : {"/layers/0", "/layers/1", "/layers/2", "/layers/3"})
    QVERIFY(one.published().count(layer) == 1 && other.published().count(layer) == 1);
  std::set<std::string> together = one.published();
  together.insert(other.published().begin(), other.published().end());
  QVERIFY2(together.size() > SlotKeys::most * 13 / 10, std::to_string(together.size()).c_str());
  // The next step has nothing to do; a smaller model withdraws.
  one.set(model(1, 0));
  one.step(world.nodes[0]->member->table());
  QCOMPARE(one.published(), std::set<std::string>{"/layers/0"});
}

NS_TEST(TestSlotKeys)
#include "test_slot_keys.moc"
