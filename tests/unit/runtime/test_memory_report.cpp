// The memory that members offer, from the registry and the profile.
#include <QtTest>

#include "core/runtime/memory_report.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

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
    QVERIFY(!part.possible);
    for (const std::size_t node : founders) QVERIFY(chain.say(node, chain::Offer{64}));  // 32 GB
    const auto offered = MemoryReport(profile("parts=3")).view(chain.registry(), self);
    QVERIFY(offered.possible && offered.possible->with_room == 3);
    QVERIFY(offered.possible->member_bytes <= 64 * tier && offered.next->member_bytes > 64 * tier);
    QCOMPARE(offered.next->with_room, 0u);
  }

  // The profile says what a size needs, and only its sizes are possible.
  void a_profile_with_sizes_has_these_only() {
    ChainFixture chain;
    const auto founders = chain.add_nodes(4);
    QVERIFY(chain.begin(founders).ok());
    const net::NodeId self = chain.member(founders[0])->id;
    config::ConsensusPart consensus = profile("parts=3");
    const auto first = MemoryReport(consensus).view(chain.registry(), self).present;
    consensus.sizes = {{6, 256, 4, 12}, {8, 256, 6, 20}, {10, 256, 9, 30}};
    QVERIFY(validate(consensus).ok());
    const auto view_at = [&](std::uint64_t size) {
      return MemoryReport(config::at_size(consensus, size)).view(chain.registry(), self);
    };
    QVERIFY(view_at(0).present.member_bytes == first.member_bytes && view_at(0).present.hidden == 128);
    QVERIFY(!view_at(0).possible && view_at(0).next->hidden == 256);
    QCOMPARE(view_at(0).next->member_bytes, 4 * tier);
    for (const std::size_t node : founders)
      QVERIFY(chain.say(node, chain::Offer{node == founders[3] ? 5u : 6u}));
    QVERIFY(view_at(0).possible->layers == 8 && view_at(0).possible->with_room == 3);
    QVERIFY(view_at(0).next->layers == 10 && view_at(0).next->with_room == 0);
    QVERIFY(view_at(1).present.hidden == 256 && view_at(1).present.member_bytes == 4 * tier);
    QVERIFY(view_at(1).possible->layers == 8);
    QVERIFY(!view_at(2).possible && view_at(2).next->member_bytes == 9 * tier);
    QVERIFY(view_at(3).present.layers == 10 && !view_at(3).possible && !view_at(3).next);
    QCOMPARE(view_at(3).present.with_room, 0u);
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
