// The steps of a row that a node computes: which are the same, which are kept, and which are tried again.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rounds/states_bench.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using test::StatesBench;
using What = PieceRequest::What;

class TestRowSteps : public QObject {
  Q_OBJECT

  static constexpr std::uint64_t values = StatesBench::values;
  static constexpr std::uint32_t row = StatesBench::row;
  const std::vector<net::NodeId> one_source = {test::Round::id_of(1)};

  // The state of another size: twice as many values.
  static Expected<Anchor> resized(std::uint32_t of, std::uint32_t to, const OuterState& before,
                                  Spool& spool) {
    NS_ASSIGN_OR_RETURN(const auto item, spool.create(1));
    static_cast<void>(item);
    if (of != row || before.counts.weights != values) return make_error(ErrorCode::Corrupt, "another row");
    return state_in_memory(test::Round::drawn(to, 1.0f, 2 * values), std::vector<float>(2 * values));
  }

 private Q_SLOTS:
  void a_step_that_was_computed_here_is_taken_without_a_fetch() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.compute();
    QVERIFY(bench.states.computes(row) && bench.made.empty());
    bench.settle(bench.after(), one_source);  // the own result comes sooner
    QVERIFY(bench.own.sources.asked.empty());
    bench.run();
    QVERIFY(!bench.states.computes(row));
    QVERIFY(bench.made.size() == 1 && bench.made[0].ok());
    QCOMPARE((*bench.made[0])->hash, bench.after().anchor);
    QCOMPARE((*bench.made[0])->trace->root, bench.round.step->trace->root);
    // It is not held before the registry names it.
    QVERIFY(bench.states.holds(row, bench.before().anchor));
    QVERIFY(bench.is_held(bench.after()));
    QVERIFY(bench.states.report(row) != nullptr && bench.states.report(row)->counted == 3);
    QVERIFY(bench.own.sources.asked.empty());
  }

  void another_result_than_the_own_one_is_fetched() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.compute();
    bench.run();
    const StepPtr other = bench.state_of(7);
    bench.settle(bench.record(other, 7), one_source);
    QVERIFY(bench.states.fetches() && !bench.own.sources.asked.empty());
    QVERIFY(bench.states.holds(row, bench.before().anchor));
  }

  void equal_inputs_are_computed_once() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    const std::size_t jobs = bench.own.work.jobs;
    bench.compute();
    bench.compute();
    bench.run();
    QVERIFY(bench.made.size() == 2 && bench.made[0].ok() && *bench.made[0] == *bench.made[1]);
    bench.compute();
    QCOMPARE(bench.made.size(), std::size_t{2});  // later, also when it is known
    bench.run();
    QVERIFY(bench.made.size() == 3 && *bench.made[2] == *bench.made[0]);
    QCOMPARE(bench.own.work.jobs, jobs + 1);
  }

  void other_inputs_are_computed_anew() {
    const std::vector<StepInput> inputs = StatesBench().round.inputs;
    std::vector<StepInput> more_tokens = inputs, other_ids = inputs;
    ++more_tokens[0].tokens;
    std::swap(other_ids[0].id, other_ids[1].id);
    const std::vector<std::tuple<std::uint8_t, std::vector<StepInput>, Hash256>> others = {
        {1, inputs, {}},
        {0, more_tokens, {}},
        {0, other_ids, {}},
        {0, {inputs[0], inputs[1]}, {}},
        {0, inputs, Hash256{1}}};
    for (const auto& [beacon, work, payloads] : others) {
      StatesBench bench;
      bench.hold(bench.round.before_step, 6);
      const std::size_t jobs = bench.own.work.jobs;
      bench.compute();
      bench.compute(beacon, work, payloads);
      bench.run();
      QCOMPARE(bench.made.size(), std::size_t{2});
      QCOMPARE(bench.own.work.jobs, jobs + 2);
    }
  }

  // Each is as large as a state.
  void two_steps_that_were_not_certified_are_kept() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    const std::size_t jobs = bench.own.work.jobs;
    for (const std::uint8_t beacon : {1, 2, 3}) {
      bench.compute(beacon);
      bench.run();
    }
    bench.compute(3);
    bench.run();
    QCOMPARE(bench.own.work.jobs, jobs + 3);
    bench.compute(1);
    bench.run();
    QCOMPARE(bench.own.work.jobs, jobs + 4);
    QCOMPARE(bench.made.size(), std::size_t{5});
    // Those that are being computed are not forgotten.
    for (const std::uint8_t beacon : {4, 5, 6, 4}) bench.compute(beacon);
    bench.run();
    QCOMPARE(bench.own.work.jobs, jobs + 7);
    QCOMPARE(bench.made.size(), std::size_t{9});
  }

  void steps_that_were_not_certified_go_with_the_next_anchor() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.compute();
    bench.compute(0, {bench.round.inputs[0], bench.round.inputs[1]});
    bench.run();
    const Hash256 other = (*bench.made.at(1))->hash;
    QVERIFY(bench.gives(What::Leaves, other));
    QVERIFY(bench.is_held(bench.after()));
    QVERIFY(!bench.gives(What::Leaves, other));
  }

  void a_step_that_this_node_had_no_room_for_is_computed_again() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.spool.full = true;
    bench.compute();
    bench.run();
    QVERIFY(bench.made.size() == 1 && !bench.made[0].ok());
    QVERIFY(is_own_failure(bench.made[0].error()) && !bench.states.computes(row));
    bench.spool.full = false;
    bench.compute();
    bench.run();
    QVERIFY(bench.made.size() == 2 && bench.made[1].ok());
  }

  // ---- Other sizes

  void a_row_of_another_size_has_an_anchor_of_that_version() {
    StatesBench bench(true, resized);
    bench.hold(bench.round.before_step, 6);
    const std::size_t jobs = bench.own.work.jobs;
    bench.resize();
    QVERIFY(bench.states.computes(row));
    bench.resize();
    bench.run();
    QVERIFY(bench.made.size() == 2 && bench.made[0].ok() && *bench.made[0] == *bench.made[1]);
    QCOMPARE(bench.own.work.jobs, jobs + 1);
    outer::AnchorIdentity identity = bench.states.identity(row, 7);
    QCOMPARE(identity.architecture_version, std::uint64_t{1});
    identity.architecture_version = 2;
    const StepPtr right = *hashed_state(identity, *resized(row, 1, *bench.round.before, bench.spool));
    QCOMPARE((*bench.made[0])->hash, right->hash);
    QVERIFY(bench.is_held(bench.record(right, 7)));
    QVERIFY(bench.gives(What::Chunk, right->hash, 1));
  }

  void another_size_is_computed_anew() {
    StatesBench bench(true, resized);
    bench.hold(bench.round.before_step, 6);
    const std::size_t jobs = bench.own.work.jobs;
    bench.resize(1);
    bench.run();
    bench.resize(2);
    bench.run();
    QVERIFY(bench.made.size() == 2 && (*bench.made[0])->hash != (*bench.made[1])->hash);
    QCOMPARE(bench.own.work.jobs, jobs + 2);
  }

  void a_model_that_keeps_its_size_has_no_other_one() {
    StatesBench bench;
    bench.hold(bench.round.before_step, 6);
    bench.resize();
    bench.run();
    QVERIFY(bench.made.size() == 1 && !bench.made[0].ok());
    QVERIFY(!is_own_failure(bench.made[0].error()));
  }

  void a_row_of_another_size_waits_for_room() {
    StatesBench bench(true, resized);
    bench.hold(bench.round.before_step, 6);
    bench.spool.full = true;
    bench.resize();
    bench.run();
    QVERIFY(bench.made.size() == 1 && !bench.made[0].ok());
    bench.spool.full = false;
    bench.resize();
    bench.run();
    QVERIFY(bench.made.size() == 2 && bench.made[1].ok());
  }

  void a_step_that_ends_after_the_object_does_nothing() {
    auto bench = std::make_unique<StatesBench>();
    bench->hold(bench->round.before_step, 6);
    auto steps = std::make_shared<StepPool>();
    const std::weak_ptr<StepPool> pool = steps;
    std::optional<RowStates> ended;
    ended.emplace(RowStates::Services{bench->own.fetcher, bench->own.work, bench->own.executor,
                                      bench->world.clock(), bench->spool, std::move(steps), resized},
                  bench->round.rules, test::Round::id_of(99),
                  std::vector<RowShape>{{0, 0, 9}, {1, 9, 9}, {row, 18, values}}, 0, [](std::uint32_t) {});
    ended->offer(row, 6, bench->round.before);
    ended->settle(row, bench->before(), {});
    bench->run();
    bool called = false;
    const auto note = [&called](const Expected<StepPtr>&) { called = true; };
    ended->resize(row, 7, 0, 1, note);
    ended->compute(row, 7, {bench->round.inputs, Hash256{}}, bench->round.limits, Hash256{}, note);
    ended.reset();
    QVERIFY(!pool.expired());  // the step is still to be made
    bench->run();
    QVERIFY(!called && pool.expired());
  }
};

NS_TEST(TestRowSteps)
#include "test_row_steps.moc"
