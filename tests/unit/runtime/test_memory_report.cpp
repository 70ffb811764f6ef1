// The memory that members offer, from the registry and the profile.
#include <QtTest>

#include "core/runtime/chain_settings.h"
#include "core/runtime/memory_report.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/growing_chain.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

constexpr std::uint64_t tier = 500'000'000;

config::ConsensusPart profile(const char* sync) {
  config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
  consensus.layers = 6;
  consensus.sync = sync;
  return consensus;
}

// A network of four that may grow twice.
struct SizedChain : ChainFixture {
  static config::ConsensusPart sized() {
    config::ConsensusPart consensus = profile("parts=2");
    consensus.sizes = {{6, 256, 4, 12}, {8, 256, 6, 20}};
    return consensus;
  }
  static chain::ChainRules rules_of(const config::ConsensusPart& consensus) {
    chain::ChainRules rules = small_rules();
    rules.sizes = size_needs(consensus);
    return rules;
  }
  SizedChain() : ChainFixture(rules_of(sized())) {
    nodes = add_nodes(4);
    if (!validate(sized()).ok() || !begin(nodes).ok()) qFatal("no chain");
  }
  node::NetworkMemoryView view() const { return report.view(registry(), member(nodes[0])->id); }
  void offer(const std::vector<std::uint32_t>& tiers) { offer_memory(*this, nodes, tiers); }
  void grow() {
    begin_change_of_size(*this, nodes);
    if (!view().changing || view().asked != node::SizeChange::Up) qFatal("a change is not shown");
    end_change_of_size(*this);
  }
  std::vector<std::size_t> nodes;
  const MemoryReport report{sized()};
};

}  // namespace

class TestRuntimeMemoryReport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_counts_members_that_the_network_relies_on() {
    ChainFixture chain;
    const auto founders = chain.add_nodes(3);
    QVERIFY(chain.begin(founders).ok());
    const std::size_t stranger = chain.add_node();
    QVERIFY(chain.join(stranger));
    for (const std::size_t node : {founders[0], founders[1], stranger})
      QVERIFY(chain.say(node, chain::Offer{9}));
    const MemoryReport report(profile("plain"));
    node::NetworkMemoryView view = report.view(chain.registry(), chain.member(founders[0])->id);
    QVERIFY(view.members == 3 && view.known == 2);
    QCOMPARE(view.offered_bytes, 18 * tier);
    QCOMPARE(view.own_bytes, 9 * tier);
    QVERIFY(view.tier == "Nano" && view.next_tier == "Micro");
    QCOMPARE(view.next_tier_bytes, std::uint64_t{40'000'000'000});
    QCOMPARE(report.view(chain.registry(), chain.member(founders[2])->id).own_bytes, std::uint64_t{0});
    QVERIFY(chain.say(founders[1], chain::Away{}));
    view = report.view(chain.registry(), chain.member(founders[0])->id);
    QVERIFY(view.members == 2 && view.known == 1);
  }

  void a_part_needs_less_than_the_whole_model() {
    ChainFixture chain;
    const auto founders = chain.add_nodes(3);
    QVERIFY(chain.begin(founders).ok());
    const net::NodeId self = chain.member(founders[0])->id;
    const auto whole = MemoryReport(profile("plain")).view(chain.registry(), self);
    const auto part = MemoryReport(profile("parts=3")).view(chain.registry(), self);
    QVERIFY(part.present.member_bytes < whole.present.member_bytes);
    QVERIFY(whole.next && part.next && whole.next->layers == part.next->layers);
    QCOMPARE(whole.present.parameters, compute::model_parameter_count(config::model_shape(profile("plain"))));
    QVERIFY(10 * whole.next->parameters >= 13 * whole.present.parameters);
    QVERIFY(part.next->member_bytes > part.present.member_bytes);
    QCOMPARE(part.needs_room, 3u);
    QVERIFY(!part.possible && !part.can_change && part.results_needed == 0);
    QVERIFY(part.next->network_bytes == 0 && part.next->members == 3 && part.next->room_percent == 0);
    for (const std::size_t node : founders) QVERIFY(chain.say(node, chain::Offer{64}));  // 32 GB
    const auto offered = MemoryReport(profile("parts=3")).view(chain.registry(), self);
    QVERIFY(offered.possible && offered.possible->with_room == 3);
    QVERIFY(offered.possible->member_bytes <= 64 * tier && offered.next->member_bytes > 64 * tier);
    QCOMPARE(offered.next->with_room, 0u);
  }

  // One size at a time, and what lacks for it by the rule of the chain.
  void a_profile_with_sizes_shows_the_next_one() {
    SizedChain chain;
    node::NetworkMemoryView view = chain.view();
    QVERIFY(view.can_change && !view.possible && view.next && !view.smaller);
    QVERIFY(view.members == 4 && view.known == 0 && view.needs_room == 3);
    QVERIFY(view.present.layers == 6 && view.present.hidden == 128 && view.present.network_bytes == 0);
    QVERIFY(view.present.is_enough() && view.present.with_room == 0);
    QVERIFY(view.next->hidden == 256 && view.next->member_bytes == 4 * tier);
    QCOMPARE(view.next->network_bytes, 18 * tier);  // one and a half times 12
    QVERIFY(view.asked == node::SizeChange::None && view.results == 0 && view.results_needed == 4);
    chain.offer({9, 4, 3, 1});
    view = chain.view();
    QVERIFY(view.offered_bytes == 17 * tier && view.known == 4 && view.own_bytes == 9 * tier);
    QVERIFY(view.next->members == 4 && view.next->with_room == 2 && view.next->offered_bytes == 17 * tier);
    QVERIFY(view.next->room_percent == 50 && view.next->needs_percent == 75 && !view.next->is_enough());
    // Even if there is room for more than one.
    chain.offer({20, 20, 20, 20});
    view = chain.view();
    QVERIFY(!view.possible && view.next->hidden == 256 && view.next->layers == 6 && view.next->is_enough());
    QCOMPARE(view.next->room_percent, 100u);
    QVERIFY(view.present.with_room == 4);
  }

  void it_tells_of_a_change() {
    SizedChain chain;
    chain.offer({20, 20, 20, 20});
    const std::uint32_t before = chain.view().results;
    QVERIFY(chain.round_of(chain.nodes));
    node::NetworkMemoryView view = chain.view();
    QVERIFY(view.asked == node::SizeChange::Up && !view.changing);
    QCOMPARE(view.results, before + 1);
    chain.grow();
    view = chain.view();
    QVERIFY(view.asked == node::SizeChange::None && view.results == 0 && !view.changing);
    QVERIFY(view.present.hidden == 256 && view.present.layers == 6 && view.next->layers == 8);
    QVERIFY(view.smaller->hidden == 128 && view.smaller->with_room == 4 && view.smaller->needs_percent == 0);
    QVERIFY(view.present.network_bytes == 12 * tier && view.present.needs_percent == 50);
    QCOMPARE(view.next->network_bytes, 30 * tier);
    chain.grow();
    view = chain.view();
    QVERIFY(view.present.layers == 8 && !view.next && view.present.is_enough());
    QVERIFY(view.smaller->hidden == 256 && view.smaller->member_bytes == 4 * tier);
    // A member that goes to sleep still counts for the present model.
    QVERIFY(chain.say(chain.nodes[3], chain::Away{}));
    chain.nodes.pop_back();
    view = chain.view();
    QVERIFY(view.members == 3 && view.present.members == 4 && view.offered_bytes == 60 * tier);
    QCOMPARE(view.present.offered_bytes, 80 * tier);
    chain.offer({1, 1, 1});
    QVERIFY(chain.round_of(chain.nodes));
    view = chain.view();
    QVERIFY(view.asked == node::SizeChange::Down && view.results > 0 && !view.present.is_enough());
    QVERIFY(view.present.with_room == 1 && view.present.room_percent == 25);
  }

  void a_profile_of_fixed_size_has_no_larger_model() {
    ChainFixture chain;
    const auto founders = chain.add_nodes(1);
    QVERIFY(chain.begin(founders).ok());
    const net::NodeId self = chain.member(founders[0])->id;
    config::ConsensusPart consensus = profile("plain");
    consensus.grows = 0;
    QVERIFY(!MemoryReport(consensus).view(chain.registry(), self).next);
    consensus.grows = 1;
    consensus.layers = 7;  // the ladder has even numbers
    const auto view = MemoryReport(consensus).view(chain.registry(), self);
    QVERIFY(!view.next && view.present.member_bytes > 0);
  }
};

NS_TEST(TestRuntimeMemoryReport)
#include "test_memory_report.moc"
