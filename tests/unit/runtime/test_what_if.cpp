// The changes if a node offered other memory or left, from registries of real blocks.
#include <QtTest>

#include "core/chain/supposed.h"
#include "core/runtime/chain_settings.h"
#include "core/runtime/own_model_part.h"
#include "core/runtime/what_if.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/growing_chain.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

constexpr std::uint64_t tier = 500'000'000;

config::ConsensusPart network(const char* sync, bool sized) {
  config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
  consensus.layers = 6;
  consensus.sync = sync;
  if (sized) consensus.sizes = {{6, 256, 4, 12}, {8, 256, 6, 20}};
  return consensus;
}

// Members that offer what a test says, and the question of one of them.
struct Village : ChainFixture {
  Village(const char* sync, bool sized, std::size_t count, std::uint32_t rows = 2)
      : ChainFixture(rules_of(network(sync, sized), rows)),
        report(network(sync, sized)),
        work(part_work(network(sync, sized))) {
    nodes = add_nodes(count);
  }
  static chain::ChainRules rules_of(const config::ConsensusPart& consensus, std::uint32_t rows) {
    chain::ChainRules rules = small_rules(chain::VotersMode::Invited, rows);
    rules.sizes = size_needs(consensus);
    return rules;
  }
  void begin_all() {
    if (!begin(nodes).ok()) qFatal("no chain");
  }
  void offer(const std::vector<std::uint32_t>& tiers) { offer_memory(*this, nodes, tiers); }
  void grow() {
    begin_change_of_size(*this, nodes);
    end_change_of_size(*this);
  }
  // Founders register with a choice of their own.
  void follow_plan() {
    for (const std::size_t node : nodes) {
      const chain::RowSet rows = member(node)->rows;
      if (!say(node, chain::Move{rows, true}) || !say(node, chain::Back{})) qFatal("no move");
    }
  }
  Expected<node::WhatIf> ask(std::size_t node, std::optional<std::uint64_t> bytes) const {
    const WallTime now{std::chrono::milliseconds(static_cast<std::int64_t>(registry().time_ms()))};
    const net::NodeId self = crypto::node_id(key(nodes[node]).public_key());
    return what_if({bytes}, {rules(), registry(), report, work, self, now});
  }
  node::WhatIf answer(std::size_t node, std::optional<std::uint64_t> bytes) const {
    const auto answered = ask(node, bytes);
    if (!answered.ok()) qFatal("%s", answered.error().message.c_str());
    return *answered;
  }
  std::vector<std::size_t> nodes;
  const MemoryReport report;
  const std::vector<double> work;
};

}  // namespace

class TestRuntimeWhatIf : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // 4 tiers of each member and 18 of all are enough for the next model.
  void more_memory_makes_the_model_grow() {
    Village chain("parts=2", true, 4);
    chain.begin_all();
    chain.offer({9, 4, 3, 1});
    const node::WhatIf grows = chain.answer(2, 6 * tier + 1);
    QVERIFY(grows.counts && grows.now.asks == node::SizeChange::None &&
            grows.then.asks == node::SizeChange::Up);
    QCOMPARE(grows.now.lacking_bytes, tier);
    QCOMPARE(grows.now.lacking_members, 1u);
    QVERIFY(grows.then.lacking_bytes == 0 && grows.then.lacking_members == 0);
    QVERIFY(grows.now.memory.own_bytes == 3 * tier && grows.then.memory.own_bytes == 6 * tier);
    QVERIFY(grows.now.memory.offered_bytes == 17 * tier && grows.then.memory.offered_bytes == 20 * tier);
    QVERIFY(!grows.part && !grows.votes);
    // The registry says that after four results, too.
    chain.offer({9, 4, 6, 1});
    for (std::uint32_t i = 1; i < chain::results_to_change_size; ++i) QVERIFY(chain.round_of(chain.nodes));
    QVERIFY(chain.registry().size().next == 1);
  }

  void the_model_stays_and_it_says_what_lacks() {
    Village chain("parts=2", true, 4);
    chain.begin_all();
    chain.offer({9, 2, 3, 1});
    // Enough in sum; of the votes, room is for half.
    const node::WhatIf room = chain.answer(1, 12 * tier);
    QVERIFY(room.then.asks == node::SizeChange::None);
    QVERIFY(room.then.lacking_bytes == 0 && room.then.lacking_members == 1);
    const node::WhatIf less = chain.answer(0, tier);
    QCOMPARE(less.then.lacking_bytes, 11 * tier);
    QCOMPARE(less.then.lacking_members, 3u);
    // Asking changes nothing, and the same question has the same answer.
    QCOMPARE(chain.member(chain.nodes[0])->memory_tiers, 9u);
    QCOMPARE(chain.answer(0, tier).then.lacking_bytes, 11 * tier);
  }

  void less_memory_and_leaving_make_it_shrink() {
    Village chain("parts=2", true, 4);
    chain.begin_all();
    chain.offer({6, 4, 4, 4});
    chain.grow();
    QCOMPARE(chain.registry().size().size, 1u);
    // 12 of all are needed; room in half of the votes.
    QVERIFY(chain.answer(0, 1 * tier).then.asks == node::SizeChange::None);
    chain.offer({6, 4, 2, 1});
    const node::WhatIf less = chain.answer(1, 2 * tier);
    QVERIFY(less.now.asks == node::SizeChange::None && less.then.asks == node::SizeChange::Down);
    QCOMPARE(less.then.lacking_bytes, tier);
    QCOMPARE(less.then.lacking_members, 1u);
    const node::WhatIf leaves = chain.answer(0, std::nullopt);
    QVERIFY(leaves.then.asks == node::SizeChange::Down);
    QCOMPARE(leaves.then.memory.members, 3u);
    QCOMPARE(leaves.then.memory.own_bytes, std::uint64_t{0});
    QCOMPARE(leaves.then.lacking_bytes, 5 * tier);
    QCOMPARE(leaves.then.lacking_members, 1u);
  }

  // The count is by votes, so of several nodes the one with most units is the first.
  void nodes_of_one_wallet_share_its_vote() {
    Village chain("parts=2", true, 3);
    for (int i = 0; i < 2; ++i) chain.nodes.push_back(chain.add_node_of(chain.wallet_index(chain.nodes[0])));
    chain.begin_all();
    chain.offer({1, 40, 1, 1, 1});
    // Wallets of 3 × 4, 12 and 12 units: 27 need room, 12 have it.
    QCOMPARE(chain.answer(1, 40 * tier).then.lacking_members, 2u);
    QCOMPARE(chain.answer(0, 40 * tier).then.lacking_members, 1u);
  }

  void a_model_that_keeps_its_size() {
    Village chain("plain", false, 4, 1);
    chain.begin_all();
    chain.offer({64, 64, 1, 1});
    const node::WhatIf more = chain.answer(2, 64 * tier);
    QVERIFY(more.counts && more.then.asks == node::SizeChange::None && !more.then.memory.can_change);
    QVERIFY(!more.now.memory.possible && more.then.memory.possible);
    QCOMPARE(more.now.lacking_members, 1u);
    QCOMPARE(more.then.lacking_members, 3u);  // of the model after that one
    const node::WhatIf leaves = chain.answer(3, std::nullopt);
    QVERIFY(leaves.then.memory.members == 3 && leaves.then.memory.needs_room == 3);
    QCOMPARE(leaves.then.lacking_members, 1u);
    QVERIFY(!leaves.part && leaves.votes);
  }

  void what_cannot_be_offered_is_refused() {
    Village chain("plain", false, 2, 1);
    chain.begin_all();
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, tier - 1, (chain::most_memory_tiers + 1) * tier, ~std::uint64_t{0}}) {
      const auto refused = chain.ask(0, bytes);
      QVERIFY(!refused.ok() && refused.error().code == ErrorCode::InvalidArgument);
    }
    QVERIFY(chain.ask(0, chain::most_memory_tiers * tier).ok() && chain.ask(0, tier).ok());
    chain.nodes.push_back(chain.add_node());
    const auto stranger = chain.ask(2, tier);
    QVERIFY(!stranger.ok() && stranger.error().code == ErrorCode::Unavailable);
    QVERIFY(stranger.error().message.find("neuroshardd status") != std::string::npos);
    // Without a vote it is a member, and nobody counts its memory.
    QVERIFY(chain.join(chain.nodes[2]));
    const node::WhatIf candidate = chain.answer(2, 9 * tier);
    QVERIFY(!candidate.counts);
    QCOMPARE(candidate.then.memory.offered_bytes, candidate.now.memory.offered_bytes);
    QVERIFY(!chain.answer(2, std::nullopt).votes);
  }

  void a_part_of_one_holder_waits_or_gets_another() {
    Village chain("parts=2", false, 4);
    for (std::size_t i = 0; i < 4; ++i) chain.set_rows(chain.nodes[i], chain::RowSet::of({i == 3 ? 1u : 0u}));
    chain.begin_all();
    chain.follow_plan();
    // Its first weights follow from the network's id.
    node::WhatIf leaves = chain.answer(3, std::nullopt);
    QVERIFY(leaves.part && leaves.part->number == 2 && leaves.part->count == 2);
    QVERIFY(leaves.part->nodes == 0 && leaves.part->wallets == 0 && !leaves.part->waits);
    QCOMPARE(leaves.part->moves_from, 1u);
    // Once it was trained, they are gone with their last holder.
    QVERIFY(chain.round_of(chain.nodes));
    leaves = chain.answer(3, std::nullopt);
    QVERIFY(leaves.part->waits && leaves.part->moves_from == 0 && leaves.part->nodes == 0);
    // One of three holders: the other part is not better off by a move.
    leaves = chain.answer(0, std::nullopt);
    QVERIFY(leaves.part->number == 1 && leaves.part->nodes == 2 && leaves.part->wallets == 2);
    QVERIFY(!leaves.part->waits && leaves.part->moves_from == 0);
    QVERIFY(!chain.answer(0, 4 * tier).part);
  }

  void a_part_of_one_wallet_gets_another() {
    Village chain("parts=2", false, 6);
    for (std::size_t i = 0; i < 6; ++i) chain.set_rows(chain.nodes[i], chain::RowSet::of({i < 4 ? 0u : 1u}));
    chain.begin_all();
    chain.follow_plan();
    QVERIFY(chain.round_of(chain.nodes));
    const node::WhatIf leaves = chain.answer(5, std::nullopt);
    QVERIFY(leaves.part && leaves.part->nodes == 1 && leaves.part->wallets == 1);
    QVERIFY(leaves.part->moves_from == 1 && !leaves.part->waits);
  }

  void without_its_vote_the_chain_may_stand_still() {
    Village four("plain", false, 4, 1);
    four.begin_all();
    node::VotesWithout votes = *four.answer(0, std::nullopt).votes;
    QVERIFY(votes.all_units == 48 && votes.other_units == 36 && !votes.nobody);
    QVERIFY(votes.lacking_at_once == 0 && votes.lacking_after_wait == 0);
    Village three("plain", false, 3, 1);
    three.begin_all();
    votes = *three.answer(0, std::nullopt).votes;
    QVERIFY(votes.lacking_at_once == 1 && votes.lacking_after_wait == 0);
    Village two("plain", false, 2, 1);
    two.begin_all();
    votes = *two.answer(0, std::nullopt).votes;
    QVERIFY(votes.lacking_at_once == 1 && votes.lacking_after_wait == 1 && !votes.nobody);
    Village one("plain", false, 1, 1);
    one.begin_all();
    const node::WhatIf alone = one.answer(0, std::nullopt);
    QVERIFY(alone.votes->nobody && alone.votes->other_units == 0 && alone.votes->lacking_after_wait == 1);
    QCOMPARE(alone.then.memory.members, 0u);
  }
};

NS_TEST(TestRuntimeWhatIf)
#include "test_what_if.moc"
