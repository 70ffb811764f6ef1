// The checks that a node was drawn for: when it checks, what it says of results that it can't check, and whom it accuses.
#include <QtTest>

#include "core/rounds/row_checks.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/chain_round.h"
#include "tests/unit/rounds/row_sources.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::RowRound;
using What = PieceRequest::What;

namespace {

constexpr std::uint64_t many_values = 20 * outer::trace_chunk;  // more chunks than are checked
constexpr Duration some_seconds = std::chrono::seconds(10), try_again = std::chrono::seconds(30);

struct CheckNode {
  CheckNode(sim::World& world, const test::ChainRound& network, const net::NodeId& self)
      : own(world, *network.round),
        checks(
            {own.fetcher, own.sources, own.sources, own.executor, own.work}, network.chain.rules(),
            network.round->rules, std::chrono::seconds(60), self,
            [&network](std::uint32_t, std::uint64_t) { return network.row(); },
            [this] { return std::optional(test::Round::id_of(++secrets)); },
            [this](const chain::Evidence& evidence, const RowProof& proof) {
              accused.emplace_back(evidence, encode_row_proof(proof));
            },
            logger) {}
  std::size_t asked() const { return own.sources.asked.size(); }
  // Nobody gives the leaves of traces.
  void withhold(bool on) {
    own.sources.script = nullptr;
    if (!on) return;
    own.sources.script = [](const net::NodeId&,
                            const PieceRequest& request) -> std::optional<Expected<Bytes>> {
      if (request.what != What::TraceLeaves) return std::nullopt;
      return piece_not_held();
    };
  }

  test::RowNode own;
  NullLogger logger;
  std::size_t secrets = 1000;  // another one each time
  std::vector<std::pair<chain::Evidence, Bytes>> accused;
  RowChecks checks;
};

struct ChecksBench {
  explicit ChecksBench(const test::ChainRoundOptions& options = {}) : network(options) {
    attestations.open(network.opening);
    contributions.open(network.opening);
    for (std::size_t i = 0; i < network.holders.size(); ++i) {
      const auto held = std::make_shared<const HeldContribution>(network.contribution(i));
      if (contributions.take(held, network.opening).verdict != chain::Verdict::Taken)
        qFatal("no contribution");
    }
    for (const std::uint32_t number : network.open()->checkers) {
      const net::NodeId id = network.chain.registry().find(number)->id;
      checkers.push_back(std::make_unique<CheckNode>(world, network, id));
    }
  }
  void attest(const std::vector<std::size_t>& holders, const chain::RowResult& result) {
    for (const std::size_t holder : holders)
      if (attestations.take(network.attestation(holder, result), network.tip()) != chain::Verdict::Taken)
        qFatal("no attestation");
  }
  void attest_right() { attest({0, 1}, network.round->attested); }
  // Each checker, in the first round.
  void look() {
    for (const auto& node : checkers) look(*node);
  }
  void look(CheckNode& node) { node.checks.look(network.tip(), attestations, contributions); }
  // Of a round without contributions, after these statements of the row's checkers, named by their places.
  void close_next(const std::vector<std::size_t>& withheld_from = {}) {
    const std::vector<chain::OpenRow> open = network.chain.registry().open_rows();
    std::vector<chain::Vector> vectors;
    for (const std::size_t place : withheld_from) {
      chain::Vector vector;
      vector.voter = network.open()->checkers[place];
      vector.withheld = {{0, 1}};
      vectors.push_back(vector);
    }
    std::sort(vectors.begin(), vectors.end(),
              [](const chain::Vector& a, const chain::Vector& b) { return a.voter < b.voter; });
    const std::uint64_t round = network.chain.registry().round() + 1;
    network.close_empty();
    AttestationBook none(network.chain.rules(), checks);
    for (const auto& node : checkers) {
      node->checks.on_close(round);
      node->checks.call(open, round, vectors);
      node->checks.look(network.tip(), none, contributions);
    }
  }
  std::vector<chain::RowRound> withheld(const CheckNode& node) const {
    return node.checks.withheld(network.chain.registry());
  }

  test::ChainRound network;
  sim::World world;
  chain::SignatureChecks checks;
  RoundPool pool;
  AttestationBook attestations{network.chain.rules(), checks};
  ContributionBook contributions{network.chain.rules(),
                                 {{0, 0, network.round->values}, {1, 0, network.round->values}},
                                 network.round->rules.codec,
                                 checks,
                                 pool,
                                 chain::RowSet::of({1})};
  std::vector<std::unique_ptr<CheckNode>> checkers;  // of row 0, in the order in which they were drawn
};

constexpr RowChecksSeen one_right{1, 0, 0}, one_withheld{0, 0, 1}, nothing_seen{};
const std::vector<RowRound> the_result = {{0, 1}}, no_result = {};

test::ChainRoundOptions of_many_chunks(std::size_t holders) {
  test::ChainRoundOptions options;
  options.holders = holders;
  options.values = many_values;
  return options;
}

}  // namespace

class TestRowChecks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_first_three_check_at_once() {
    ChecksBench bench;
    QCOMPARE(bench.checkers.size(), chain::most_checkers);
    CheckNode holder(bench.world, bench.network, bench.network.id(bench.network.holders[0]));
    bench.look();
    QCOMPARE(bench.checkers[0]->asked(), std::size_t{0});  // nothing is attested yet
    bench.attest_right();
    bench.look();
    bench.look(holder);
    bench.world.run_for(some_seconds);
    bench.look();
    bench.world.run_for(some_seconds);
    for (std::size_t place = 0; place < bench.checkers.size(); ++place) {
      const CheckNode& node = *bench.checkers[place];
      const bool first = place < chain::checkers_per_row;
      QCOMPARE(node.checks.seen(), first ? one_right : nothing_seen);
      QCOMPARE(node.asked() > 0, first);
      QVERIFY(node.accused.empty());
    }
    QCOMPARE(holder.asked(), std::size_t{0});
  }

  void two_of_the_first_call_the_others_data() {
    QTest::addColumn<std::vector<std::size_t>>("withheld_from");
    QTest::addColumn<bool>("certified");
    QTest::addColumn<bool>("late");
    QTest::addColumn<bool>("called");
    using Places = std::vector<std::size_t>;
    QTest::newRow("nobody") << Places{} << true << false << false;
    QTest::newRow("one") << Places{1} << true << false << false;
    QTest::newRow("one, and those that wait") << Places{1, 3, 4, 5} << true << false << false;
    QTest::newRow("two") << Places{0, 2} << true << false << true;
    QTest::newRow("three") << Places{0, 1, 2} << true << false << true;
    QTest::newRow("two, of another result") << Places{0, 2} << false << false << false;
    QTest::newRow("two, a round later") << Places{0, 2} << true << true << false;
  }
  void two_of_the_first_call_the_others() {
    QFETCH(std::vector<std::size_t>, withheld_from);
    QFETCH(bool, certified);
    QFETCH(bool, late);
    QFETCH(bool, called);
    ChecksBench bench;
    bench.attest_right();
    bench.look();
    const test::Round& round = *bench.network.round;
    bench.network.end(certified ? round.attested : round.result_of(*round.with_changed_weights(0)));
    if (late) {
      bench.close_next();
      bench.network.end_empty();
    }
    bench.close_next(withheld_from);
    bench.world.run_for(some_seconds);
    for (std::size_t place = chain::checkers_per_row; place < bench.checkers.size(); ++place) {
      QCOMPARE(bench.checkers[place]->checks.seen(), called ? one_right : nothing_seen);
      QCOMPARE(bench.checkers[place]->asked() > 0, called);
    }
    QCOMPARE(bench.checkers[0]->checks.seen(), one_right);
  }

  void certified_results_are_listed_until_they_are_found_right() {
    for (const bool certified : {true, false}) {
      ChecksBench bench;
      CheckNode& node = *bench.checkers[0];
      const test::Round& round = *bench.network.round;
      node.withhold(true);
      bench.attest_right();
      bench.look();
      bench.world.run_for(some_seconds);
      QCOMPARE(node.checks.seen(), one_withheld);
      QCOMPARE(bench.withheld(node), no_result);  // the round has no result yet
      QCOMPARE(bench.checkers[1]->checks.seen(), one_right);
      bench.network.end(certified ? round.attested : round.result_of(*round.with_changed_weights(0)));
      QCOMPARE(bench.withheld(node), certified ? the_result : no_result);
      QCOMPARE(bench.withheld(*bench.checkers[1]), no_result);
      QCOMPARE(bench.withheld(*bench.checkers[3]), no_result);  // does not check it
      // Tried again, and withheld again: it is one result.
      bench.world.run_for(3 * try_again);
      QCOMPARE(node.checks.seen(), one_withheld);
      QCOMPARE(bench.withheld(node), certified ? the_result : no_result);
      node.withhold(false);
      bench.world.run_for(try_again + some_seconds);
      QCOMPARE(node.checks.seen(), one_right);
      QCOMPARE(bench.withheld(node), no_result);
    }
  }

  // Another choice each time would let holders give only what they like.
  void a_second_try_is_about_the_same_chunks() {
    ChecksBench bench(of_many_chunks(3));
    CheckNode& node = *bench.checkers[0];
    test::RowSources& sources = node.own.sources;
    // The newest chunk that is asked for has no sums when it is the last one to be checked.
    sources.script = [&](const net::NodeId&, const PieceRequest& request) -> std::optional<Expected<Bytes>> {
      if (request.what != What::TraceSums || sources.places(What::Chunk).size() < 2 * checked_chunks)
        return std::nullopt;
      return piece_not_held();
    };
    bench.attest({0, 1, 2}, bench.network.round->attested);
    bench.look(node);
    bench.world.run_for(some_seconds);
    QCOMPARE(node.checks.seen(), one_withheld);
    const std::vector<std::uint64_t> chosen = sources.places(What::Chunk);
    QCOMPARE(chosen.size(), 2 * checked_chunks);  // each weights and momentum
    QCOMPARE(node.own.work.jobs, checked_chunks - 1);
    const MonotonicTime ended = sources.asked.back().at;

    sources.script = nullptr;
    sources.asked.clear();
    bench.world.run_for(try_again - some_seconds - std::chrono::seconds(1));
    QVERIFY(sources.asked.empty());
    bench.world.run_for(some_seconds);
    QCOMPARE(node.checks.seen(), one_right);
    QVERIFY(sources.asked.front().at - ended >= try_again);
    QCOMPARE(sources.places(What::Chunk), chosen);
    // Others choose others.
    CheckNode& other = *bench.checkers[1];
    other.secrets += 100;
    bench.look(other);
    bench.world.run_for(some_seconds);
    QCOMPARE(other.checks.seen(), one_right);
    QVERIFY(other.own.sources.places(What::Chunk) != chosen);
  }

  // Two wallets that agree could make any result.
  void of_two_holders_all_chunks_are_checked() {
    for (const std::size_t holders : {std::size_t{2}, std::size_t{3}}) {
      ChecksBench bench(of_many_chunks(holders));
      bench.attest_right();
      bench.look(*bench.checkers[0]);
      bench.world.run_for(some_seconds);
      QCOMPARE(bench.checkers[0]->checks.seen(), one_right);
      QCOMPARE(bench.checkers[0]->own.work.jobs,
               holders == 2 ? std::size_t(bench.network.round->chunks()) : checked_chunks);
    }
  }

  void results_of_settled_rows_are_forgotten() {
    ChecksBench bench;
    CheckNode& node = *bench.checkers[0];
    node.withhold(true);
    bench.attest_right();
    bench.look(node);
    bench.world.run_for(some_seconds);
    bench.network.end(bench.network.round->attested);
    for (std::uint64_t round = 0; round <= chain::rounds_to_settle; ++round) {
      const bool settled = round == chain::rounds_to_settle;
      QCOMPARE(bench.network.open() == nullptr, settled);
      bench.close_next();
      QCOMPARE(bench.withheld(node), settled ? no_result : the_result);
      bench.world.run_for(try_again);  // a check may be under way
      const std::size_t asked = node.asked();
      bench.world.run_for(4 * try_again);
      QCOMPARE(node.asked() > asked, !settled);
      bench.network.end_empty();
    }
  }

  void a_wrong_result_accuses_each_that_attested_it() {
    ChecksBench bench;
    const test::Round& round = *bench.network.round;
    const StepPtr wrong = round.with_changed_weights(1);
    for (const auto& node : bench.checkers) node->own.sources.add_step(wrong);
    bench.attest({0}, round.attested);
    bench.attest({1}, round.result_of(*wrong));
    CheckNode& node = *bench.checkers[0];
    bench.look(node);
    bench.world.run_for(some_seconds);
    QCOMPARE(node.checks.seen(), (RowChecksSeen{1, 1, 0}));
    QCOMPARE(node.accused.size(), std::size_t{1});
    bench.attest({2}, round.result_of(*wrong));
    bench.look(node);
    bench.look(node);
    QCOMPARE(node.accused.size(), std::size_t{2});
    for (std::size_t i = 0; i < node.accused.size(); ++i) {
      const auto& [evidence, proof] = node.accused[i];
      QVERIFY(evidence == bench.network.accusation(i + 1, *wrong, proof));
      QVERIFY(chain::evidence_holds(evidence, bench.network.chain.rules().network));
      const auto read = decode_row_proof(proof);
      QVERIFY(read.ok());
      QCOMPARE(judge(round.rules, round.row, *bench.network.open(), round.result_of(*wrong), *read),
               ProofFinding::Wrong);
    }
    QCOMPARE(node.checks.seen(), (RowChecksSeen{1, 1, 0}));
  }
};

NS_TEST(TestRowChecks)
#include "test_row_checks.moc"
