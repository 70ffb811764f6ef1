// The states of a row that a node holds: where it gets the anchor that the registry names, what it keeps for a return, and
// what it gives to peers.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/rounds/states_bench.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using test::StatesBench;
using What = PieceRequest::What;

class TestRowStates : public QObject {
  Q_OBJECT

  static constexpr std::uint32_t row = StatesBench::row;
  static constexpr Duration fetch_pause = std::chrono::seconds(2);
  const std::vector<net::NodeId> one_source = {test::Round::id_of(1)};

 private Q_SLOTS:
  // ---- The anchor that the registry names

  void a_state_of_the_disk_is_held_once_it_has_the_anchors_hash() {
    StatesBench bench;
    bench.states.offer(row, 6, bench.round.before);
    bench.settle(bench.before(), one_source);
    bench.settle(bench.before(), one_source);  // it is being checked
    QVERIFY(!bench.states.holds(row, bench.before().anchor) && bench.held.empty());
    bench.run();
    QCOMPARE(bench.held, std::vector{row});
    QVERIFY(bench.states.holds(row, bench.before().anchor));
    QVERIFY(bench.states.state(row) == bench.round.before && bench.states.hash(row) == bench.before().anchor);
    QVERIFY(bench.is_held(bench.before()));
    QVERIFY(bench.own.sources.asked.empty() && bench.states.fetched() == 0);
    QCOMPARE(bench.own.work.jobs, std::size_t{1});
    QVERIFY(bench.states.report(row) == nullptr);  // nothing was judged here
  }

  void a_wrong_state_of_the_disk_is_not_believed() {
    StatesBench bench;
    bench.states.offer(row, 6, bench.round.step->state);
    bench.settle(bench.before(), one_source);
    bench.run();
    QVERIFY(bench.held.empty() && bench.own.sources.asked.empty());
    bench.settle(bench.before(), one_source);
    bench.run();
    QVERIFY(bench.states.holds(row, bench.before().anchor));
    QCOMPARE(bench.states.fetched(), std::uint64_t{1});
  }

  void a_state_of_another_round_is_kept_until_its_row_is_settled() {
    for (const bool settled : {false, true}) {
      StatesBench bench;
      Anchor old = bench.state_of(4)->state;
      const std::weak_ptr<const OuterState> kept = old;
      bench.states.offer(row, 4, std::move(old));
      bench.settle(bench.record(bench.round.before_step, 4 + chain::rounds_to_settle + settled), {});
      QCOMPARE(kept.expired(), settled);
    }
  }

  void an_anchor_that_is_not_here_is_fetched_from_peers() {
    StatesBench bench;
    bench.settle(bench.before());
    bench.run();
    QVERIFY(!bench.states.fetches() && bench.own.sources.asked.empty());
    bench.settle(bench.before(), one_source);
    QVERIFY(bench.states.fetches());
    const std::size_t asked = bench.own.sources.asked.size();
    bench.settle(bench.before(), one_source);
    QCOMPARE(bench.own.sources.asked.size(), asked);
    bench.run();
    QCOMPARE(bench.held, std::vector{row});
    QVERIFY(bench.states.holds(row, bench.before().anchor) && !bench.states.fetches());
    QCOMPARE(bench.states.fetched(), std::uint64_t{1});
    QVERIFY(bench.states.report(row) == nullptr);
  }

  void a_fetch_that_fails_is_tried_again_after_a_pause() {
    StatesBench bench;
    test::RowSources& sources = bench.own.sources;
    sources.script = [](const net::NodeId&, const PieceRequest&) -> std::optional<Expected<Bytes>> {
      return piece_not_held();
    };
    bench.settle(bench.before(), one_source);
    bench.world.run_until([&] { return !bench.states.fetches(); }, MonotonicTime(std::chrono::minutes(1)));
    QVERIFY(bench.held.empty() && bench.states.fetched() == 0);
    sources.script = nullptr;
    sources.asked.clear();
    bench.settle(bench.before(), one_source);
    bench.world.run_for(fetch_pause - std::chrono::milliseconds(1));
    bench.settle(bench.before(), one_source);
    QVERIFY(sources.asked.empty());
    bench.world.run_for(std::chrono::milliseconds(1));
    bench.settle(bench.before(), one_source);
    bench.run();
    QVERIFY(bench.states.holds(row, bench.before().anchor));
  }

  // The registry goes on while a member fetches.
  void a_newer_anchor_takes_the_place_of_one_that_is_fetched() {
    StatesBench bench;
    const StepPtr newer = bench.state_of(8);
    bench.settle(bench.before(), one_source);
    bench.states.offer(row, 8, newer->state);
    bench.settle(bench.record(newer, 8), one_source);
    bench.run();
    QCOMPARE(bench.held, std::vector{row});
    QVERIFY(bench.states.holds(row, newer->hash));
    QCOMPARE(bench.states.fetched(), std::uint64_t{0});
  }

  // It costs the line nothing more.
  void an_anchor_that_is_no_longer_wanted_is_not_fetched_to_its_end() {
    StatesBench bench;
    bench.settle(bench.before(), one_source);
    const auto asked = [&] { return bench.own.sources.asked_for(What::Chunk); };
    bench.settle(bench.record(bench.state_of(8), 8), one_source);  // nobody gives it
    bench.run();
    QCOMPARE(asked(), std::size_t{0});
    QVERIFY(bench.held.empty());
  }

  void a_fetch_that_ends_after_the_own_step_is_not_held() {
    StatesBench bench;
    bench.hold(bench.state_of(5), 5);
    bench.compute();
    bench.run();
    const StepPtr own = *bench.made.at(0);
    bench.settle(bench.before(), one_source);
    QVERIFY(bench.states.fetches());
    QVERIFY(bench.is_held(bench.record(own, 7)));
    bench.run();
    QVERIFY(!bench.states.fetches() && bench.states.holds(row, own->hash));
  }

  void a_newer_anchor_is_held_instead_of_one_that_is_checked() {
    StatesBench bench;
    const StepPtr newer = bench.state_of(8);
    bench.states.offer(row, 6, bench.round.before);
    bench.states.offer(row, 8, newer->state);
    bench.settle(bench.before());
    bench.settle(bench.record(newer, 8));
    bench.run();
    QCOMPARE(bench.held, std::vector{row});
    QVERIFY(bench.states.holds(row, newer->hash));
  }

  void it_holds_all_once_it_has_the_rows_of_its_own() {
    chain::testing::ChainFixture chain(chain::testing::small_rules(chain::VotersMode::Invited, row + 1));
    StatesBench bench;
    const auto node = chain.add_node();
    const Hash256 none{};
    QVERIFY(chain.begin({node}, {none, none, bench.state_of(0)->hash}).ok());
    QVERIFY(!bench.states.holds_all(chain.registry()));
    bench.hold(bench.state_of(0), 0);
    QVERIFY(bench.states.holds_all(chain.registry()));  // nobody asks it for rows 0 and 1
    bench.hold(bench.state_of(1), 1);
    QVERIFY(!bench.states.holds_all(chain.registry()));
  }

  // ---- Rows that return to an earlier state

  void a_row_that_is_taken_back_needs_no_fetch() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.compute();
    bench.run();
    QVERIFY(bench.is_held(bench.after()));
    const StepPtr next = bench.state_of(8);
    bench.hold(next, 8);
    QVERIFY(bench.is_held(bench.after()));
    QVERIFY(bench.is_held(bench.before()));
    QVERIFY(bench.is_held(bench.record(next, 8)));
  }

  void so_many_earlier_states_are_kept_as_a_row_can_return_to() {
    for (const bool traced : {true, false}) {
      StatesBench bench(traced);
      std::vector<StepPtr> all;
      for (const std::uint64_t number : {6, 7, 8, 9}) {
        all.push_back(bench.state_of(number));
        bench.hold(all.back(), number);
      }
      const auto gives = [&](std::size_t i) { return bench.gives(What::Leaves, all[i]->hash); };
      QVERIFY(gives(3) && gives(2));  // peers may be a step behind
      QCOMPARE(gives(1), traced);
      QVERIFY(!gives(0));
      QCOMPARE(bench.is_held(bench.record(all[1], 7)), traced);
    }
  }

  // ---- Pieces

  void it_gives_pieces_of_states_and_of_steps_that_it_made() {
    StatesBench bench;
    const Hash256 before = bench.before().anchor, after = bench.after().anchor;
    const Hash256 trace = bench.round.step->trace->root;
    QVERIFY(!bench.gives(What::Leaves, before));
    bench.hold(bench.round.before_step, 6);
    QVERIFY(bench.gives_right(What::Leaves, before, 0));
    QVERIFY(bench.gives_right(What::Leaves, before, 32));
    QVERIFY(bench.gives_right(What::Chunk, before, 1));
    QVERIFY(bench.gives_right(What::Chunk, before, 2));
    QVERIFY(!bench.gives(What::Chunk, before, 0));  // everybody makes the header
    QVERIFY(!bench.gives(What::Chunk, before, 3));
    QVERIFY(!bench.gives(What::Leaves, before, 1000));
    QVERIFY(!bench.gives(What::TraceLeaves, trace));
    bench.compute();
    bench.run();
    QVERIFY(bench.gives_right(What::Leaves, after, 0));
    QVERIFY(bench.gives_right(What::TraceLeaves, trace, 0));
    QVERIFY(bench.gives_right(What::TraceSums, trace, 0));
    QCOMPARE(bench.states.piece({row, What::TraceSums, trace, 1}).error().code, ErrorCode::NotFound);
    // By its hash, and of its row.
    QVERIFY(!bench.gives(What::TraceLeaves, after) && !bench.gives(What::Leaves, trace));
    QVERIFY(!bench.states.piece({1, What::Leaves, before, 0}).ok());
    QVERIFY(!bench.states.piece({3, What::Leaves, before, 0}).ok());
    QVERIFY(!bench.gives(What::Chunk, Hash256{}, 1));  // a row without a state has no hash
  }
};

NS_TEST(TestRowStates)
#include "test_row_states.moc"
