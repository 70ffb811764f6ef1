// The rows of a closed round as a node computes them: when it can begin, what the result says, and what happens when it can't make one.
#include <QtTest>

#include "core/rounds/closed_rows.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/computing_node.h"
#include "tests/unit/rounds/resized_round.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::RowResult;
using chain::RowSet;

namespace {

test::ChainRoundOptions closed_row_options(std::uint32_t rows = 2) {
  test::ChainRoundOptions options;
  options.others = 2;
  options.values = 5000;
  options.rows = rows;
  return options;
}

// A holder of row 0 after the close of its round.
struct ClosedRowBench {
  explicit ClosedRowBench(std::uint32_t rows = 2) : network(closed_row_options(rows)) {
    node.book.open(network.opening);
  }
  void hold() { node.hold(0, network.chain.registry().rows()[0], network.round->before); }
  void compute() { node.computed.compute(network.tip()); }
  void compute_to_the_end() {
    compute();
    node.run();
  }
  std::optional<RowResult> result() const { return node.computed.result(network.tip(), 0, 0); }

  const test::ChainRound network;
  sim::World world;
  test::ComputingNode node{world, *network.round, network.chain.rules(),
                           network.chain.rules().has_holders() ? RowSet::of({0}) : RowSet()};
};

struct ResizedRowBench {
  explicit ResizedRowBench(ResizeRow resize = test::ResizedRound::resize)
      : node(world, network.round, network.chain.rules(), {}, std::move(resize)) {
    node.book.open(network.tip());
  }
  void hold(std::uint32_t row) { node.hold(row, network.record(row), network.before); }
  void compute() {
    node.computed.compute(network.tip());
    node.run();
  }
  std::optional<RowResult> result(std::uint32_t row) const {
    return node.computed.result(network.tip(), row, row);
  }

  const test::ResizedRound network;
  sim::World world;
  test::ComputingNode node;
};

}  // namespace

class TestClosedRows : public QObject {
  Q_OBJECT

  static constexpr Duration retry_pause = std::chrono::seconds(5);

 private Q_SLOTS:
  void a_row_is_computed_once_all_its_payloads_are_here() {
    ClosedRowBench bench;
    bench.hold();
    const std::size_t jobs = bench.node.own.work.jobs;
    for (std::size_t holder = 0; holder < 3; ++holder) {
      bench.compute_to_the_end();
      bench.node.take(bench.network, holder);
      bench.compute_to_the_end();
      QVERIFY(!bench.result() && bench.node.ended == 0);
      QCOMPARE(bench.node.own.work.jobs, jobs);
      bench.node.take_payload(bench.network, holder);
    }
    bench.compute();
    QVERIFY(!bench.result());
    bench.compute();  // it is under way
    bench.node.run();
    QCOMPARE(bench.result(), bench.network.round->attested);
    QCOMPARE(bench.node.ended, 1);
    bench.compute_to_the_end();
    QCOMPARE(bench.node.ended, 1);
    QCOMPARE(bench.node.own.work.jobs, jobs + 1);
  }

  void it_is_computed_from_the_anchor_of_the_registry_only() {
    ClosedRowBench bench;
    bench.node.take_all(bench.network);
    bench.compute_to_the_end();
    const Anchor other = state_in_memory(std::vector<float>(5000), std::vector<float>(5000));
    const auto hash = (*hashed_state(bench.node.states.identity(0, 0), other))->hash;
    bench.node.hold(0, {hash, 0, {}}, other);
    bench.compute_to_the_end();
    QVERIFY(!bench.result() && bench.node.ended == 0);
    bench.hold();
    bench.compute_to_the_end();
    QCOMPARE(bench.result(), bench.network.round->attested);
  }

  // The close names one of two contributions that a member signed.
  void another_contribution_than_the_certified_one_does_not_count() {
    ClosedRowBench bench;
    bench.hold();
    for (const std::size_t holder : {1, 2}) {
      bench.node.take(bench.network, holder);
      bench.node.take_payload(bench.network, holder);
    }
    const crypto::KeyPair& key = bench.network.chain.key(bench.network.holders[0]);
    const chain::Contribution right = bench.network.contribution(0);
    chain::Contribution other = right;
    ++other.rows[0].tokens;
    chain::sign_contribution(other, key, bench.network.chain.rules().network);
    const auto held = [](const chain::Contribution& made) {
      return std::make_shared<const HeldContribution>(made);
    };
    QCOMPARE(bench.node.book.take(held(other), bench.network.opening).verdict, chain::Verdict::Taken);
    bench.node.take_payload(bench.network, 0);
    bench.compute_to_the_end();
    QVERIFY(!bench.result() && bench.node.ended == 0);
    const std::uint32_t member = bench.network.chain.number(bench.network.holders[0]);
    QVERIFY(bench.node.book.take_certified(held(right), chain::entry_of(right, member),
                                           bench.network.id(bench.network.holders[0])));
    bench.node.take_payload(bench.network, 0);
    bench.compute_to_the_end();
    QCOMPARE(bench.result(), bench.network.round->attested);
  }

  void a_row_that_nobody_contributed_to_is_carried_without_a_computation() {
    ClosedRowBench bench;
    QCOMPARE(bench.node.computed.result(bench.network.tip(), 1, 1), chain::carried_row(1));
    QVERIFY(!bench.result());
  }

  void a_row_of_which_no_payload_counts_is_carried() {
    ClosedRowBench bench(1);
    bench.hold();
    for (std::size_t holder = 0; holder < 3; ++holder) {
      bench.node.take(bench.network, holder);
      const Bytes noise(bench.network.round->payloads[holder].size(), 0xff);
      PayloadReading reading;
      reading.root = bench.network.round->works[holder].payload;
      QVERIFY(bench.node.book.take_payload(bench.network.chain.number(bench.network.holders[holder]), 0,
                                           in_memory(noise), reading));
    }
    bench.compute_to_the_end();
    QVERIFY(bench.node.ended == 1 && bench.node.failures.empty());
    QCOMPARE(bench.result(), chain::carried_row(0));
  }

  void without_a_trace_the_result_names_the_payloads() {
    ClosedRowBench bench(1);
    bench.hold();
    bench.node.take_all(bench.network);
    bench.compute_to_the_end();
    RowResult right = bench.network.round->attested;
    std::vector<Hash256> payloads;
    for (const chain::RowWork& work : bench.network.round->works) payloads.push_back(work.payload);
    right.trace = crypto::merkle_root(payloads);
    QCOMPARE(bench.result(), right);
  }

  void a_node_without_room_says_so_and_tries_again() {
    ClosedRowBench bench;
    bench.hold();
    bench.node.take_all(bench.network);
    bench.node.spool.full = true;
    bench.compute_to_the_end();
    QVERIFY(!bench.result());
    QCOMPARE(bench.node.failures.size(), std::size_t{1});
    QCOMPARE(bench.node.failures[0].code, ErrorCode::Exhausted);
    QCOMPARE(bench.node.ended, 0);
    bench.node.spool.full = false;
    bench.world.run_for(retry_pause - std::chrono::seconds(2));
    bench.compute_to_the_end();
    QVERIFY(!bench.result() && bench.node.ended == 0);
    bench.world.run_for(std::chrono::seconds(1));
    bench.compute_to_the_end();
    QCOMPARE(bench.result(), bench.network.round->attested);
    QVERIFY(bench.node.failures.size() == 1 && bench.node.ended == 1);
  }

  void a_step_of_an_earlier_round_is_nothing_any_more() {
    ClosedRowBench bench;
    bench.hold();
    bench.node.take_all(bench.network);
    bench.compute();
    chain::ChainTip next = bench.network.tip();
    test::ChainRound later(closed_row_options());
    later.end_empty();
    next.registry = later.chain.registry_ptr();
    bench.node.book.open(next);
    bench.node.computed.clear();
    bench.node.run();
    QVERIFY(bench.node.ended == 0 && bench.node.failures.empty());
    QVERIFY(!bench.result());
  }

  // ---- Rounds that change the size of the model

  void each_row_of_another_size_follows_from_its_state_alone() {
    ResizedRowBench bench;
    bench.hold(1);
    bench.compute();
    QVERIFY(!bench.result(0));
    QCOMPARE(bench.result(1), bench.network.right(1));
    bench.hold(0);
    bench.compute();
    QCOMPARE(bench.result(0), bench.network.right(0));
    QCOMPARE(bench.node.ended, 2);
    const std::size_t jobs = bench.node.own.work.jobs;
    bench.compute();
    QVERIFY(bench.node.own.work.jobs == jobs && bench.node.ended == 2);
  }

  void a_row_of_another_size_is_made_again_after_it_was_taken_back() {
    ResizedRowBench bench;
    bench.hold(0);
    bench.compute();
    QVERIFY(bench.result(0));
    const test::ResizedRound returned(2);  // the same chain with other states
    const auto result = [&] { return bench.node.computed.result(returned.tip(), 0, 0); };
    QVERIFY(!result());
    bench.node.computed.compute(returned.tip());
    QVERIFY(!result());
    bench.node.hold(0, returned.record(0), returned.before);
    const std::size_t jobs = bench.node.own.work.jobs;
    bench.node.computed.compute(returned.tip());
    bench.node.run();
    QCOMPARE(result(), returned.right(0));
    QCOMPARE(bench.node.own.work.jobs, jobs + 1);
    QVERIFY(!bench.result(0));  // it is not of the other anchor
  }

  void a_row_that_returns_while_it_is_resized_is_made_again() {
    ResizedRowBench bench;
    bench.hold(0);
    bench.node.computed.compute(bench.network.tip());
    const test::ResizedRound returned(2);
    bench.node.computed.compute(returned.tip());
    bench.node.run();
    const auto result = [&] { return bench.node.computed.result(returned.tip(), 0, 0); };
    QVERIFY(!result());
    bench.node.hold(0, returned.record(0), returned.before);
    bench.node.computed.compute(returned.tip());
    bench.node.run();
    QCOMPARE(result(), returned.right(0));
  }

  void a_node_whose_model_has_no_other_size_carries_the_rows_and_says_why() {
    ResizedRowBench bench(nullptr);
    bench.hold(0);
    bench.compute();
    QVERIFY(bench.node.ended == 1 && bench.node.failures.size() == 1);
    QCOMPARE(bench.node.failures[0].code, ErrorCode::Unsupported);
    QCOMPARE(bench.result(0), chain::carried_row(0));
    const std::size_t jobs = bench.node.own.work.jobs;
    bench.world.run_for(2 * retry_pause);
    bench.compute();
    QVERIFY(bench.node.own.work.jobs == jobs && bench.node.ended == 1 && bench.node.failures.size() == 1);
  }

  void without_room_for_another_size_it_tries_again() {
    ResizedRowBench bench;
    bench.hold(0);
    bench.node.spool.full = true;
    bench.compute();
    QVERIFY(!bench.result(0) && bench.node.failures.size() == 1 && bench.node.ended == 0);
    bench.node.spool.full = false;
    bench.compute();
    QVERIFY(!bench.result(0));
    bench.world.run_for(retry_pause);
    bench.compute();
    QCOMPARE(bench.result(0), bench.network.right(0));
  }
};

NS_TEST(TestClosedRows)
#include "test_closed_rows.moc"
