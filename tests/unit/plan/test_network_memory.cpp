// Models that the members' memory is enough for.
#include <QtTest>

#include "core/compute/growth.h"
#include "core/plan/network_memory.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::plan;

namespace {

constexpr std::uint64_t gb = 1'000'000'000;

GrowthRules small_rules() {
  GrowthRules rules;
  rules.minimum.layers = 6;
  rules.minimum.hidden = 256;
  rules.minimum.heads = 4;
  rules.minimum.kv_heads = 1;
  rules.minimum.head_dim = 64;
  rules.minimum.ffn = 1024;
  rules.minimum.experts = 4;
  rules.minimum.vocab = 1024;
  rules.minimum.sequence = 128;
  rules.batch_tokens = rules.minimum.sequence;
  return rules;
}

std::vector<ModelSize> sizes_of(const GrowthRules& rules) {
  return model_sizes(rules,
                     [&rules](const compute::ModelShape& shape) { return training_bytes(rules, shape); });
}

bool same(const compute::ModelShape& a, const compute::ModelShape& b) {
  return a.layers == b.layers && a.hidden == b.hidden;
}

}  // namespace

class TestPlanNetworkMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_size_can_grow_to_the_next() {
    const std::vector<ModelSize> sizes = sizes_of(small_rules());
    QVERIFY(sizes.size() > 5);
    QVERIFY(same(sizes.front().shape, small_rules().minimum));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      QCOMPARE(sizes[i].member_bytes, training_bytes(small_rules(), sizes[i].shape));
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      QVERIFY(compute::check_growth(sizes[i - 1].shape, sizes[i].shape).ok());
      QVERIFY(10 * compute::model_parameter_count(sizes[i].shape) >=
              13 * compute::model_parameter_count(sizes[i - 1].shape));
    }
  }

  void a_model_of_fixed_size_has_no_larger_one() {
    GrowthRules rules = small_rules();
    rules.grows = false;
    const auto sizes = sizes_of(rules);
    QCOMPARE(sizes.size(), std::size_t{1});
    QCOMPARE(network_memory(sizes, 0, {64 * gb, 64 * gb}).possible, std::size_t{0});
  }

  void it_counts_members_with_room() {
    const auto sizes = sizes_of(small_rules());
    const std::uint64_t now = sizes[1].member_bytes, next = sizes[2].member_bytes;
    const std::vector<std::uint64_t> offered{next, next - 1, now, now - 1, 0};
    const NetworkMemory memory = network_memory(sizes, 1, offered);
    QCOMPARE(memory.offered_bytes, 2 * next + 2 * now - 2);
    QCOMPARE(memory.known, std::size_t{4});
    QCOMPARE(memory.needs_room, std::size_t{4});  // three quarters of five
    QCOMPARE(members_with_room(sizes[1], offered), std::size_t{3});
    QCOMPARE(members_with_room(sizes[2], offered), std::size_t{1});
    QCOMPARE(memory.possible, std::size_t{1});
    QCOMPARE(network_memory(sizes, 1, {}).possible, std::size_t{1});
  }

  // Every larger size is tried against the offers by itself.
  void the_largest_size_with_enough_room_is_possible() {
    const auto sizes = sizes_of(small_rules());
    for (std::size_t most = 0; most < sizes.size(); ++most) {
      const std::uint64_t enough = sizes[most].member_bytes;
      const NetworkMemory memory = network_memory(sizes, 0, {enough, enough + 1, enough, 0});
      QCOMPARE(memory.possible, most);
      QCOMPARE(network_memory(sizes, 0, {enough, enough, enough - 1, 0}).possible, most == 0 ? 0 : most - 1);
    }
  }
};

NS_TEST(TestPlanNetworkMemory)
#include "test_network_memory.moc"
