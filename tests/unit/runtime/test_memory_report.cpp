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
    QVERIFY(part.member_bytes < whole.member_bytes);
    QVERIFY(whole.larger && part.larger && whole.larger->layers == part.larger->layers);
    QVERIFY(whole.larger->parameters * 10 >=
            13 * compute::model_parameter_count(config::model_shape(profile("plain"))));
    QVERIFY(part.larger->member_bytes > part.member_bytes);
    QCOMPARE(part.larger->needs_room, 3u);
  }

  void a_profile_of_fixed_size_has_no_larger_model() {
    ChainFixture chain;
    const auto founders = chain.add_nodes(1);
    QVERIFY(chain.begin(founders).ok());
    const net::NodeId self = chain.member(founders[0])->id;
    config::ConsensusPart consensus = profile("plain");
    consensus.grows = 0;
    QVERIFY(!MemoryReport(consensus).view(chain.registry(), self).larger);
    consensus.grows = 1;
    consensus.layers = 7;  // the ladder has even numbers
    const auto view = MemoryReport(consensus).view(chain.registry(), self);
    QVERIFY(!view.larger && view.member_bytes > 0);
  }
};

NS_TEST(TestRuntimeMemoryReport)
#include "test_memory_report.moc"
