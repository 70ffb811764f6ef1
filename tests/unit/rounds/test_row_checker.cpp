// A checker finds right and wrong results by what sources give, whatever some of them do, and says so when nobody gives a piece.
#include <QtTest>

#include <set>

#include "core/rounds/row_checker.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/row_sources.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using test::Round;
using What = PieceRequest::What;

namespace {

constexpr Duration piece_time = std::chrono::seconds(60);
constexpr Duration hour = std::chrono::hours(1);

// Three chunks, whose results nobody changes.
const Round& shared_round() {
  static const Round round(outer::Codec::Int8, 3);
  return round;
}
const net::NodeId first_source = Round::id_of(50), second_source = Round::id_of(51);

struct CheckerBench {
  RowCase about(const StepResult& of, std::vector<std::uint64_t> chunks = {}) const {
    const std::vector<net::NodeId> sources = {first_source, second_source};
    return {round.open, round.row, round.result_of(of), round.workers, sources, sources, std::move(chunks)};
  }
  void begin(RowCase what) {
    checker->check(std::move(what), [this](CheckOutcome found, std::shared_ptr<const RowProof> shown) {
      ++ends;
      outcome = found;
      proof = std::move(shown);
      took = world.now() - begun;
    });
    begun = world.now();
  }
  // Null: it did not end within an hour.
  const CheckOutcome* check(RowCase what) {
    ends = 0;
    begin(std::move(what));
    world.run_until([this] { return ends > 0; }, world.now() + hour);
    world.run_for(hour);
    return ends == 1 && !checker->is_busy() ? &outcome : nullptr;
  }
  bool finds(CheckOutcome wanted) { return finds(about(*round.step), wanted); }
  bool finds(RowCase what, CheckOutcome wanted) {
    const CheckOutcome* found = check(std::move(what));
    return found != nullptr && *found == wanted && (proof != nullptr) == (wanted == CheckOutcome::Wrong);
  }

  const Round& round = shared_round();
  sim::World world;
  test::RowNode node{world, round};
  test::RowSources& sources = node.sources;
  std::unique_ptr<RowChecker> checker = std::make_unique<RowChecker>(
      RowChecker::Services{node.fetcher, sources, sources, node.executor, node.work}, round.rules,
      piece_time);
  int ends = 0;
  CheckOutcome outcome{};
  std::shared_ptr<const RowProof> proof;
  MonotonicTime begun{};
  Duration took{};
};

// What `of` gives for pieces of this kind; others are right.
test::RowSources::Script answers(const net::NodeId& source, std::set<What> kinds, Expected<Bytes> answer) {
  return [source, kinds = std::move(kinds), answer = std::move(answer)](
             const net::NodeId& of, const PieceRequest& request) -> std::optional<Expected<Bytes>> {
    if (of != source || kinds.count(request.what) == 0) return std::nullopt;
    return answer;
  };
}
Error busy() {
  return make_error(ErrorCode::Exhausted, "too many calls wait");
}
const std::set<What> single_pieces = {What::Chunk, What::TraceSums, What::Payload};

}  // namespace

class TestRowChecker : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_honest_result_is_right() {
    CheckerBench bench;
    QVERIFY(bench.finds(CheckOutcome::Right));
    QCOMPARE(bench.node.work.jobs, std::size_t(bench.round.chunks()));
    QCOMPARE(bench.sources.places(What::Chunk), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
    QCOMPARE(bench.sources.asked_of(second_source), std::size_t{0});
    // Once more, as the next check of this node.
    QVERIFY(bench.finds(CheckOutcome::Right));
  }

  void a_changed_leaf_is_proven_wrong() {
    for (std::uint64_t chunk = 0; chunk < shared_round().chunks(); ++chunk) {
      CheckerBench bench;
      const Round& round = bench.round;
      const StepPtr changed = round.with_changed_weights(chunk);
      bench.sources.add_step(changed);
      QVERIFY(bench.finds(bench.about(*changed), CheckOutcome::Wrong));
      QCOMPARE(bench.proof->chunk, chunk);
      // Others that read it see the same, and nothing against the honest holders.
      const auto read = decode_row_proof(encode_row_proof(*bench.proof));
      QVERIFY(read.ok());
      QCOMPARE(round.find(round.result_of(*changed), *read), ProofFinding::Wrong);
      QCOMPARE(round.find(round.attested, *read), ProofFinding::NotProven);
    }
  }

  void a_contribution_of_impossible_size_is_proven_wrong_at_once_data() {
    QTest::addColumn<quint64>("bytes");
    QTest::newRow("none") << quint64{0};
    QTest::newRow("a byte less") << quint64{shared_round().works[1].payload_bytes - 1};
    QTest::newRow("more than any disk has") << (quint64{1} << 63);
  }
  void a_contribution_of_impossible_size_is_proven_wrong_at_once() {
    QFETCH(quint64, bytes);
    CheckerBench bench;
    RowCase about = bench.about(*bench.round.step);
    about.contributors[1].work.part.payload_bytes = bytes;
    std::vector<chain::RowContributor> named;
    for (const ProofContributor& one : about.contributors)
      named.push_back({one.id, chain::work_root({one.work.part})});
    about.open.contributors = chain::contributors_hash(named);
    QVERIFY(bench.finds(about, CheckOutcome::Wrong));
    QVERIFY(bench.sources.asked.empty());
  }

  void only_chosen_chunks_are_fetched() {
    CheckerBench bench;
    const StepPtr changed = bench.round.with_changed_weights(2);
    bench.sources.add_step(changed);
    QVERIFY(bench.finds(bench.about(*changed, {1}), CheckOutcome::Right));
    QCOMPARE(bench.node.work.jobs, std::size_t{1});
    QCOMPARE(bench.sources.places(What::Chunk), (std::vector<std::uint64_t>{2, 5}));
    QCOMPARE(bench.sources.places(What::TraceSums), (std::vector<std::uint64_t>{0, 2}));
    const SliceRange slices = *chunk_slices(bench.round.rules.codec, bench.round.values, 1);
    QCOMPARE(bench.sources.places(What::Payload),
             (std::vector<std::uint64_t>{slices.first * payload_slice_bytes}));
    // Control.
    QVERIFY(bench.finds(bench.about(*changed, {0, 2}), CheckOutcome::Wrong));
    QCOMPARE(bench.proof->chunk, std::uint64_t{2});
  }

  void wrong_bytes_are_asked_of_the_next_source() {
    CheckerBench bench;
    const auto wrong_of = [&](std::set<net::NodeId> sources) {
      return [&bench, sources = std::move(sources)](
                 const net::NodeId& of, const PieceRequest& request) -> std::optional<Expected<Bytes>> {
        if (sources.count(of) == 0) return std::nullopt;
        return bench.sources.wrong(request);
      };
    };
    bench.sources.script = wrong_of({first_source});
    QVERIFY(bench.finds(CheckOutcome::Right));
    for (const What what : {What::Chunk, What::TraceSums, What::Payload, What::Leaves, What::TraceLeaves,
                            What::PayloadLeaves}) {
      std::size_t of_second = 0;
      for (const auto& one : bench.sources.asked)
        of_second += one.of == second_source && one.request.what == what;
      QVERIFY2(of_second > 0, qPrintable(QString::number(int(what))));
    }
    bench.sources.script = wrong_of({first_source, second_source});
    QVERIFY(bench.finds(CheckOutcome::Unavailable));
    bench.sources.script = nullptr;
    QVERIFY(bench.finds(CheckOutcome::Right));
  }

  // An answer that is too short, of each kind that is asked for by itself.
  void short_answers_are_no_pieces() {
    for (const What what : single_pieces) {
      CheckerBench bench;
      bench.sources.script = answers(first_source, {what}, encode_piece_answer(9, Bytes(9, 1)));
      QVERIFY(bench.finds(CheckOutcome::Right));
      QVERIFY(bench.sources.asked_of(second_source) > 0);
    }
  }

  void a_busy_source_is_asked_again_later() {
    CheckerBench bench;
    QVERIFY(bench.finds(CheckOutcome::Right));
    QVERIFY(bench.took < std::chrono::seconds(1));
    for (const What what : single_pieces) {
      int refusals = 2;
      bench.sources.asked.clear();
      bench.sources.script = [&](const net::NodeId&,
                                 const PieceRequest& request) -> std::optional<Expected<Bytes>> {
        if (request.what != what || refusals == 0) return std::nullopt;
        --refusals;
        return busy();
      };
      RowCase about = bench.about(*bench.round.step, {1});
      about.holders = about.attesters = {first_source};
      QVERIFY(bench.finds(std::move(about), CheckOutcome::Right));
      QCOMPARE(refusals, 0);
      QVERIFY(bench.took >= std::chrono::seconds(1) && bench.took < std::chrono::seconds(4));
    }
  }

  // However long it goes on: the check has an end.
  void a_source_that_stays_busy_is_given_up() {
    CheckerBench bench;
    bench.sources.script = answers(first_source, single_pieces, busy());
    RowCase alone = bench.about(*bench.round.step);
    alone.holders = alone.attesters = {first_source};
    QVERIFY(bench.finds(std::move(alone), CheckOutcome::Unavailable));
    QVERIFY(bench.took > std::chrono::seconds(10));
    // The other source gives what this one does not.
    QVERIFY(bench.finds(CheckOutcome::Right));
    QVERIFY(bench.sources.asked_of(second_source) > 0);
  }

  void nobody_has_a_piece() {
    for (const What what : {What::Chunk, What::TraceSums, What::Payload, What::Leaves, What::TraceLeaves,
                            What::PayloadLeaves}) {
      CheckerBench bench;
      bench.sources.script = [&](const net::NodeId&,
                                 const PieceRequest& request) -> std::optional<Expected<Bytes>> {
        if (request.what != what) return std::nullopt;
        return piece_not_held();
      };
      QVERIFY(bench.finds(CheckOutcome::Unavailable));
      QVERIFY(bench.sources.asked_of(second_source) > 0);
      bench.sources.script = nullptr;
      QVERIFY(bench.finds(CheckOutcome::Right));
    }
    CheckerBench bench;
    bench.sources.unknown = {first_source, second_source};
    QVERIFY(bench.finds(CheckOutcome::Unavailable));
    QVERIFY(bench.sources.asked.empty());
    bench.sources.unknown = {first_source};
    QVERIFY(bench.finds(CheckOutcome::Right));
    RowCase about = bench.about(*bench.round.step);
    about.attesters.clear();
    QVERIFY(bench.finds(std::move(about), CheckOutcome::Unavailable));
  }

  // At each instant of a check, with calls, a pause and judging under way.
  void an_end_in_mid_check_calls_nothing() {
    const auto busy_at_first = [](test::RowSources* sources) {
      sources->script = [busy_once = std::make_shared<int>(2)](
                            const net::NodeId&,
                            const PieceRequest& request) -> std::optional<Expected<Bytes>> {
        if (request.what != What::Chunk || *busy_once == 0) return std::nullopt;
        --*busy_once;
        return busy();
      };
    };
    CheckerBench whole;
    busy_at_first(&whole.sources);
    QVERIFY(whole.finds(CheckOutcome::Right));
    int ended = 0;
    for (Duration at{}; at < whole.took;
         at += at < std::chrono::milliseconds(20) ? std::chrono::milliseconds(1) : whole.took / 8) {
      CheckerBench bench;
      busy_at_first(&bench.sources);
      bench.begin(bench.about(*bench.round.step));
      bench.world.run_for(at);
      QVERIFY(bench.checker->is_busy());
      bench.checker.reset();
      const std::size_t asked = bench.sources.asked_for(What::Chunk) + bench.sources.asked_for(What::Payload);
      bench.world.run_for(hour);
      QCOMPARE(bench.ends, 0);
      QCOMPARE(bench.sources.asked_for(What::Chunk) + bench.sources.asked_for(What::Payload), asked);
      ++ended;
    }
    QVERIFY(ended > 20);
  }
};

NS_TEST(TestRowChecker)
#include "test_row_checker.moc"
