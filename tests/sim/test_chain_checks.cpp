// Members that check rows which they do not hold: wrong results are proven and taken back, whoever attested them loses
// its vote, and nobody can accuse an honest holder. NS_LONG=1 takes more seeds.
#include <QtTest>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/pieces.h"
#include "tests/sim/holders_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::by_turns;
using test::Fate;
using test::HoldersLab;
using test::lab_second;
using test::PostKind;

namespace {

constexpr std::size_t nodes = 6;                  // two of each row
constexpr std::size_t values = 2 * 65536 + 1000;  // some three chunks of each row
constexpr std::uint64_t quarter_of_an_hour = 900, two_hours = 7200;

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

enum class Lie : std::uint8_t { Nothing, Weight, Momentum, Sums, LastSums, Norm };

Bytes bytes_of(const ByteSource& source) {
  return *read_all(source);
}

// Makes the right step, then changes something in a chunk, as somebody does who keeps to all forms.
class FalseSteps final : public rounds::StepPool {
 public:
  Expected<rounds::StepPtr> make(const Hash256&,
                                 const std::function<Expected<rounds::StepPtr>()>& step) override {
    auto made = step();
    if (!made.ok() || lie == Lie::Nothing) return made;
    auto changed = std::make_shared<rounds::StepResult>(**made);
    if (lie == Lie::Weight || lie == Lie::Momentum)
      change_state(changed.get());
    else if (lie == Lie::Norm)
      changed->report->median_norm *= 2;
    else
      change_trace(changed.get());
    if (once) lie = Lie::Nothing;
    return rounds::StepPtr(std::move(changed));
  }
  Lie lie = Lie::Nothing;
  std::size_t chunk = 1;
  bool once = false;

 private:
  void change_state(rounds::StepResult* step) const {
    Bytes bytes = bytes_of(*step->state->bytes);
    const std::size_t whole = static_cast<std::size_t>(step->state->counts.weights) * sizeof(float),
                      chunks = (whole + outer::anchor_chunk_bytes - 1) / outer::anchor_chunk_bytes;
    const bool weight = lie == Lie::Weight;
    const std::size_t first = (weight ? 0 : whole) + chunk * outer::anchor_chunk_bytes;
    const std::size_t size = std::min(outer::anchor_chunk_bytes, whole - chunk * outer::anchor_chunk_bytes);
    bytes[first + 2] ^= 1;
    step->leaves[1 + chunk + (weight ? 0 : chunks)] =
        crypto::merkle_leaf(ByteSpan(bytes).subspan(first, size));
    step->hash = crypto::merkle_root(step->leaves);
    step->state = std::make_shared<const rounds::OuterState>(
        rounds::OuterState{step->state->counts, in_memory(std::move(bytes))});
  }
  void change_trace(rounds::StepResult* step) const {
    rounds::StepTrace trace = *step->trace;
    Bytes bytes = bytes_of(*trace.bytes);
    const std::size_t size = trace.sums * sizeof(double),
                      at = lie == Lie::Sums ? chunk : trace.leaves.size() - 1;
    bytes[at * size + 5] ^= 1;
    trace.leaves[at] = crypto::merkle_leaf(ByteSpan(bytes).subspan(at * size, size));
    trace.root = crypto::merkle_root(trace.leaves);
    trace.bytes = in_memory(std::move(bytes));
    step->trace = std::make_shared<const rounds::StepTrace>(std::move(trace));
  }
};

HoldersLab::Change with_steps(const std::function<rounds::StepPool*(std::size_t)>& steps) {
  return [steps](ChainWorldOptions* options) {
    options->initial.assign(test::holders_rows * values, 0.0f);
    options->steps = steps;
  };
}

bool is_expelled(const HoldersLab& lab, std::uint32_t wallet, std::size_t by) {
  const chain::WalletRecord* record = lab.registry(by).wallet(wallet);
  return record != nullptr && record->expelled;
}

class TestChainChecks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void honest_results_are_found_right();
  void two_of_two_that_agree_on_a_wrong_row_lose_it_data();
  void two_of_two_that_agree_on_a_wrong_row_lose_it();
  void one_of_two_that_lies_is_expelled();
  void a_bit_that_flips_once_expels_nobody();
  void a_false_proof_harms_nobody();
  void a_result_that_is_withheld_is_taken_back_data();
  void a_result_that_is_withheld_is_taken_back();
};

void TestChainChecks::honest_results_are_found_right() {
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    HoldersLab lab(seed, nodes, by_turns, nullptr, 0, with_steps(nullptr));
    QVERIFY(lab.world.run_to_round(6, quarter_of_an_hour * lab_second));
    std::uint64_t right = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      const rounds::RowChecksSeen seen = lab.world.training(node).view().checks;
      QCOMPARE(seen.wrong, 0u);
      right += seen.right;
    }
    // Three checkers of each of three rows, in five rounds at least.
    QVERIFY2(right >= 5 * 3 * 3, qPrintable(QString::number(right)));
    QVERIFY(lab.registry().strikes().empty());
    QCOMPARE(lab.world.seen().rows_carried, 0u);
    // Two rounds are open.
    for (const chain::OpenRow& open : lab.registry().open_rows())
      QVERIFY(open.round + chain::rounds_to_settle > lab.registry().round());
  }
}

void TestChainChecks::two_of_two_that_agree_on_a_wrong_row_lose_it_data() {
  QTest::addColumn<int>("lie");
  QTest::newRow("a weight") << static_cast<int>(Lie::Weight);
  QTest::newRow("a momentum") << static_cast<int>(Lie::Momentum);
  QTest::newRow("sums") << static_cast<int>(Lie::Sums);
  QTest::newRow("the last sums") << static_cast<int>(Lie::LastSums);
  QTest::newRow("the norm") << static_cast<int>(Lie::Norm);
  QTest::newRow("control: nothing") << static_cast<int>(Lie::Nothing);
}

void TestChainChecks::two_of_two_that_agree_on_a_wrong_row_lose_it() {
  QFETCH(int, lie);
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    FalseSteps steps;
    HoldersLab lab(seed, nodes, by_turns, nullptr, 0,
                   with_steps([&](std::size_t node) { return node % 3 == 0 ? &steps : nullptr; }));
    for (const std::size_t node : {0, 3}) lab.world.set_honest(node, false);
    QVERIFY(lab.world.run_to_round(3, quarter_of_an_hour * lab_second));
    const std::uint64_t before = lab.registry(1).round();
    const std::uint32_t wallets[] = {lab.registry(1).find(lab.world.id(0))->wallet,
                                     lab.registry(1).find(lab.world.id(3))->wallet};
    steps.lie = static_cast<Lie>(lie);
    const bool lies = steps.lie != Lie::Nothing;
    const auto gone = [&] { return is_expelled(lab, wallets[0], 1) && is_expelled(lab, wallets[1], 1); };
    const auto over = [&] { return gone() || lab.registry(1).round() >= before + 6; };
    QVERIFY(lab.world.run_until(over, quarter_of_an_hour * lab_second));
    QCOMPARE(gone(), lies);
    const std::string how =
        fmt::format("seed {}: lies after round {}, looked at in round {}, row 0 of round {}", seed, before,
                    lab.registry(1).round(), lab.registry(1).rows()[0].changed_round);
    qInfo("%s", how.c_str());
    if (!lies) continue;
    // Within two rounds, and the row has an anchor from before the lie.
    QVERIFY2(lab.registry(1).round() <= before + 3, how.c_str());
    QVERIFY2(lab.registry(1).rows()[0].changed_round <= before, how.c_str());
    // The others go on.
    const std::uint64_t then = lab.registry(1).round();
    QVERIFY(lab.world.run_until([&] { return lab.registry(1).round() >= then + 3; },
                                quarter_of_an_hour * lab_second));
    QVERIFY(lab.age(1, 1) <= 1 && lab.age(2, 1) <= 1);
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

void TestChainChecks::one_of_two_that_lies_is_expelled() {
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    FalseSteps steps;
    HoldersLab lab(seed, nodes, by_turns, nullptr, 0,
                   with_steps([&](std::size_t node) { return node == 3 ? &steps : nullptr; }));
    lab.world.set_honest(3, false);
    QVERIFY(lab.world.run_to_round(3, quarter_of_an_hour * lab_second));
    const std::uint32_t wallet = lab.registry().find(lab.world.id(3))->wallet;
    steps.lie = Lie::Weight;
    QVERIFY(
        lab.world.run_until([&] { return is_expelled(lab, wallet, 0); }, quarter_of_an_hour * lab_second));
    // Its row goes on with the honest holder.
    QVERIFY(lab.world.run_until([&] { return lab.age(0) == 0; }, quarter_of_an_hour * lab_second));
    QVERIFY(lab.registry().find(lab.world.id(0)) != nullptr);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().wrong_anchors, 0u);
  }
}

void TestChainChecks::a_bit_that_flips_once_expels_nobody() {
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    FalseSteps steps;
    HoldersLab lab(seed, nodes, by_turns, nullptr, 0,
                   with_steps([&](std::size_t node) { return node == 3 ? &steps : nullptr; }));
    QVERIFY(lab.world.run_to_round(3, quarter_of_an_hour * lab_second));
    steps.once = true;
    steps.lie = Lie::Weight;
    QVERIFY(lab.world.run_until([&] { return !lab.registry().strikes().empty(); },
                                quarter_of_an_hour * lab_second));
    const std::uint64_t then = lab.registry().round();
    QVERIFY(lab.world.run_until([&] { return lab.registry().round() >= then + 4; },
                                quarter_of_an_hour * lab_second));
    QVERIFY(lab.registry().find(lab.world.id(3)) != nullptr);
    QVERIFY(lab.age(0) <= 1);
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

// Node 5 hears attestations of honest holders and says that they are wrong, with a useless proof.
void TestChainChecks::a_false_proof_harms_nobody() {
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    std::optional<chain::Attestation> heard;
    const Bytes proof(1000, 7);
    std::uint64_t accusations = 0, asked = 0;
    std::unique_ptr<HoldersLab> lab;
    lab = std::make_unique<HoldersLab>(
        seed, nodes, by_turns,
        [&](std::size_t node) -> test::EditingCaller::Edit {
          if (node != 5) return nullptr;
          return [&](const net::Contact&, PostKind kind, Bytes* post) {
            if (kind != PostKind::Heartbeat && kind != PostKind::Vote) return Fate::Send;
            const chain::MemberRecord* accused = heard ? lab->registry(1).find(heard->voter) : nullptr;
            if (accused == nullptr) return Fate::Send;
            const chain::Evidence evidence{
                accused->key, chain::FalseResult{chain::attested_row(*heard, 0), crypto::sha256(proof),
                                                 static_cast<std::uint32_t>(proof.size())}};
            *post = chain::encode_item(chain::EvidencePost{evidence});
            ++accusations;
            return Fate::Send;
          };
        },
        0, with_steps(nullptr));
    lab->world.set_answers(
        5, [&](const net::Caller&, net::Method method, ByteSpan request, const net::Respond& respond) {
          if (method == net::Method::ChainPost &&
              request[0] == static_cast<std::uint8_t>(PostKind::Attestation)) {
            auto attestation = chain::decode_attestation(request.subspan(1), test::holders_rows);
            if (attestation.ok()) heard = std::move(*attestation);
          }
          if (method != net::Method::RoundPiece) return false;
          const auto wanted = rounds::decode_piece_request(request);
          if (!wanted.ok() || wanted->what != rounds::PieceRequest::What::Proof) return false;
          ++asked;
          respond(rounds::answer_from(proof, wanted->place));
          return true;
        });
    lab->world.set_honest(5, false);
    QVERIFY(lab->world.run_to_round(6, quarter_of_an_hour * lab_second));
    const std::string how =
        fmt::format("seed {}: {} accusations, the proof was asked for {} times", seed, accusations, asked);
    qInfo("%s", how.c_str());
    QVERIFY2(accusations > 10 && asked > 0, how.c_str());
    // Each of the others asks once in a round.
    QVERIFY2(asked <= (lab->registry(1).round() + 1) * (nodes - 1), how.c_str());
    QVERIFY(lab->registry(1).strikes().empty());
    for (std::size_t node = 0; node < nodes; ++node)
      QVERIFY(lab->registry(1).find(lab->world.id(node)) != nullptr);
    QCOMPARE(lab->world.seen().conflicts, 0u);
  }
}

void TestChainChecks::a_result_that_is_withheld_is_taken_back_data() {
  QTest::addColumn<int>("withholding");  // holders of row 0
  QTest::addColumn<int>("from");         // so many of the four others
  QTest::addColumn<bool>("back");
  QTest::newRow("both from all four") << 2 << 4 << true;
  QTest::newRow("both from three of four") << 2 << 3 << false;  // as if three said so of an honest row
  QTest::newRow("one of both from all four") << 1 << 4 << false;
  QTest::newRow("control: nobody") << 0 << 0 << false;
}

// Holders of row 0 leave checkers without an answer when they ask for the trace of a result: no checker can say anything
// of it. No round waits for them.
void TestChainChecks::a_result_that_is_withheld_is_taken_back() {
  QFETCH(int, withholding);
  QFETCH(int, from);
  QFETCH(bool, back);
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    // A holder that does not answer is given up after some ten seconds, so rounds are longer than in other tests.
    HoldersLab lab(seed, nodes, by_turns, nullptr, 0, [](ChainWorldOptions* options) {
      with_steps(nullptr)(options);
      options->trainer.step_time = 3 * lab_second;
      options->training.clock.first_deadline = 180 * lab_second;
    });
    bool withhold = false;
    constexpr std::size_t holders[] = {0, 3}, others[] = {1, 2, 4, 5};
    const auto withholds = [&](const net::Caller& caller, net::Method method, ByteSpan request,
                               const net::Respond&) {
      if (!withhold || method != net::Method::RoundPiece) return false;
      const bool asks = std::any_of(others, others + from,
                                    [&](std::size_t node) { return lab.world.id(node) == caller.id; });
      const auto wanted = rounds::decode_piece_request(request);
      return asks && wanted.ok() && wanted->what == rounds::PieceRequest::What::TraceLeaves;
    };
    for (int i = 0; i < withholding; ++i) lab.world.set_answers(holders[i], withholds);
    QVERIFY(lab.world.run_to_round(3, two_hours * lab_second));
    withhold = true;
    const std::uint64_t begun = lab.registry(1).round();
    std::uint64_t newest = 0, back_to = 0;
    const auto over = [&] {
      const std::uint64_t changed = lab.registry(1).rows()[0].changed_round;
      if (back_to == 0 && changed < newest) back_to = changed;
      newest = std::max(newest, changed);
      return back_to != 0 || lab.registry(1).round() >= begun + 7;
    };
    QVERIFY(lab.world.run_until(over, two_hours * lab_second));
    const std::uint64_t seen = lab.registry(1).round();
    std::uint64_t withheld = 0, right = 0;
    for (const std::size_t node : others) {
      const rounds::RowChecksSeen checks = lab.world.training(node).view().checks;
      QCOMPARE(checks.wrong, 0u);
      withheld += checks.withheld;
      right += checks.right;
    }
    const std::string how = fmt::format(
        "seed {}: withheld after round {}, in round {} row 0 is back at round {}, {} results withheld, {} "
        "right",
        seed, begun, seen, back_to, withheld, right);
    qInfo("%s", how.c_str());
    QVERIFY2((back_to != 0) == back, how.c_str());
    QVERIFY2((withheld > 0) == (withholding == 2 && from > 0) && right > 0, how.c_str());
    // The other rows have an anchor of each round, and nobody is punished.
    for (std::uint32_t row = 1; row < test::holders_rows; ++row) QCOMPARE(lab.age(row, 1), 0u);
    QVERIFY(lab.registry(1).strikes().empty());
    for (std::size_t node = 0; node < nodes; ++node)
      QVERIFY(lab.registry(1).find(lab.world.id(node)) != nullptr);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    if (!back) {
      QCOMPARE(lab.age(0, 1), 0u);
      QCOMPARE(lab.world.seen().rows_carried, 0u);
      continue;
    }
    // Of a result of the first rounds in which they gave nothing, in the second round after it.
    QVERIFY2(back_to >= begun && back_to <= begun + 1 && seen <= begun + 3, how.c_str());
    // When they give again, their row goes on.
    withhold = false;
    QVERIFY(lab.world.run_until([&] { return lab.registry(1).round() >= seen + 6; }, two_hours * lab_second));
    QVERIFY(lab.age(0, 1) <= 1);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().wrong_anchors, 0u);
  }
}

}  // namespace

NS_TEST(TestChainChecks)
#include "test_chain_checks.moc"
