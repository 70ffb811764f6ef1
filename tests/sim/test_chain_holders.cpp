// Rows with few holders: members that hold some rows of the model only, and judge the others by attestations.
// NS_LONG=1 takes more seeds.
#include <QtTest>

#include <algorithm>
#include <array>

#include "core/sim/identities.h"
#include "tests/sim/holders_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::Fate;
using test::lab_second;
using test::PostKind;

namespace {

constexpr std::size_t rows = test::holders_rows;
using Lab = test::HoldersLab;
using test::by_turns;

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// A way out that attests other results than the node computed.
test::EditingCaller::Edit liar(const std::function<const crypto::KeyPair&()>& key, const Hash256& network) {
  return [key, network](const net::Contact&, PostKind kind, Bytes* post) {
    if (kind != PostKind::Attestation) return Fate::Send;
    auto attestation = chain::decode_attestation(ByteSpan(*post).subspan(1), rows);
    if (!attestation.ok()) return Fate::Send;
    for (chain::RowResult& row : attestation->rows) row.anchor[0] ^= 1;
    chain::sign_attestation(*attestation, key(), network);
    post->resize(1);
    const Bytes changed = chain::encode_attestation(*attestation);
    post->insert(post->end(), changed.begin(), changed.end());
    return Fate::Send;
  };
}

class TestChainHolders : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_hold_and_train_their_rows_only();
  void a_holder_that_lies_carries_its_row_and_no_other_data();
  void a_holder_that_lies_carries_its_row_and_no_other();
  void a_silent_holder_holds_nothing_up();
  void of_five_holders_the_majority_decides();
  void a_row_without_a_holder_waits_for_one();
  void a_vouched_newcomer_becomes_the_first_holder_of_a_row_data();
  void a_vouched_newcomer_becomes_the_first_holder_of_a_row();
  void a_newcomer_fetches_its_rows_only();
  void kills_at_random_stop_no_row_that_has_a_holder();
  void nodes_move_between_rows();
};

void TestChainHolders::nodes_hold_and_train_their_rows_only() {
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    Lab lab(seed, 6);
    const bool there = lab.world.run_to_round(12, 400 * lab_second);
    const std::string how =
        fmt::format("seed {}: round {}, {} carried, {} conflicts", seed, lab.world.round(0),
                    lab.world.seen().rows_carried, lab.world.seen().conflicts);
    QVERIFY2(there, how.c_str());
    QVERIFY2(lab.world.seen().conflicts == 0 && lab.world.seen().rows_carried == 0, how.c_str());
    QVERIFY2(lab.world.seen().wrong_anchors == 0 && lab.world.seen().twice == 0, how.c_str());
    lab.world.run_until([&] { return lab.world.agreement_rate() == 1; }, 5 * lab_second);
    QCOMPARE(lab.world.agreement_rate(), 1.0);
    for (std::size_t node = 0; node < 6; ++node) {
      QCOMPARE(lab.world.disk(node).anchors.size(), std::size_t{1});
      QCOMPARE(lab.world.training(node).view().counted, lab.registry(node).round());
    }
    for (std::uint32_t row = 0; row < rows; ++row)
      QVERIFY2(lab.error_of_row(row) < 0.2, qPrintable(QString::number(lab.error_of_row(row))));
  }
}

void TestChainHolders::a_holder_that_lies_carries_its_row_and_no_other_data() {
  QTest::addColumn<bool>("lies");
  QTest::newRow("one of two lies") << true;
  QTest::newRow("control: nobody lies") << false;
}

void TestChainHolders::a_holder_that_lies_carries_its_row_and_no_other() {
  QFETCH(bool, lies);
  constexpr std::size_t who = 3;  // holds row 0, as node 0
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    std::unique_ptr<Lab> lab;
    lab = std::make_unique<Lab>(seed, 6, by_turns, [&](std::size_t node) -> test::EditingCaller::Edit {
      if (!lies || node != who) return nullptr;
      return liar([&lab, node]() -> const crypto::KeyPair& { return lab->world.key(node); },
                  crypto::sha256(as_bytes(std::string_view("simulated network"))));
    });
    if (lies) lab->world.set_honest(who, false);
    QVERIFY(lab->world.run_to_round(8, 600 * lab_second));
    QCOMPARE(lab->world.seen().conflicts, 0u);
    QCOMPARE(lab->world.seen().wrong_anchors, 0u);
    const std::uint64_t round = lab->registry().round();
    QCOMPARE(lab->age(0), lies ? round : 0u);
    QCOMPARE(lab->age(1), 0u);
    QCOMPARE(lab->age(2), 0u);
    if (!lies) continue;
    // Once it is gone, the row goes on, with the work that waited.
    lab->world.kill(who);
    QVERIFY(lab->world.run_until([&] { return lab->age(0) == 0; }, 300 * lab_second));
    QCOMPARE(lab->world.seen().conflicts, 0u);
  }
}

void TestChainHolders::a_silent_holder_holds_nothing_up() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Lab lab(seed, 6, by_turns, [](std::size_t node) -> test::EditingCaller::Edit {
      if (node != 3) return nullptr;
      return [](const net::Contact&, PostKind kind, Bytes*) {
        return kind == PostKind::Attestation ? Fate::Drop : Fate::Send;
      };
    });
    QVERIFY(lab.world.run_to_round(8, 600 * lab_second));
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().rows_carried, 0u);
    for (std::uint32_t row = 0; row < rows; ++row) QCOMPARE(lab.age(row), 0u);
  }
}

void TestChainHolders::of_five_holders_the_majority_decides() {
  constexpr std::size_t nodes = 15;  // five of each row; the first two holders of row 0 lie
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    std::unique_ptr<Lab> lab;
    lab = std::make_unique<Lab>(seed, nodes, by_turns, [&](std::size_t node) -> test::EditingCaller::Edit {
      if (node != 0 && node != 3) return nullptr;
      return liar([&lab, node]() -> const crypto::KeyPair& { return lab->world.key(node); },
                  crypto::sha256(as_bytes(std::string_view("simulated network"))));
    });
    for (const std::size_t node : {0, 3}) lab->world.set_honest(node, false);
    QVERIFY(lab->world.run_to_round(6, 600 * lab_second));
    QCOMPARE(lab->world.seen().conflicts, 0u);
    QCOMPARE(lab->world.seen().rows_carried, 0u);
    QCOMPARE(lab->world.seen().wrong_anchors, 0u);
    for (std::uint32_t row = 0; row < rows; ++row) QCOMPARE(lab->age(row, 1), 0u);
  }
}

void TestChainHolders::a_row_without_a_holder_waits_for_one() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Lab lab(seed, 5);  // row 2 is node 2's alone
    QVERIFY(lab.world.run_to_round(4, 300 * lab_second));
    lab.world.kill(2);
    QVERIFY(lab.world.run_to_round(10, 600 * lab_second));
    QVERIFY2(lab.age(2) >= 4, qPrintable(QString::number(lab.age(2))));
    QVERIFY(lab.age(0) <= 1 && lab.age(1) <= 1);
    lab.world.start(2);
    QVERIFY(lab.world.run_until([&] { return lab.age(2) == 0; }, 300 * lab_second));
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().wrong_anchors, 0u);
  }
}

void TestChainHolders::a_vouched_newcomer_becomes_the_first_holder_of_a_row_data() {
  QTest::addColumn<bool>("vouched");
  QTest::newRow("with a voucher") << true;
  QTest::newRow("control: without") << false;
}

// Nobody can have its payloads before it votes, and it votes after its first certified contribution.
void TestChainHolders::a_vouched_newcomer_becomes_the_first_holder_of_a_row() {
  QFETCH(bool, vouched);
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Lab lab(seed, 3, by_turns, nullptr, 2);  // nobody holds row 2
    QVERIFY(lab.world.run_to_round(4, 300 * lab_second));
    QCOMPARE(lab.registry().rows().at(2).changed_round, 0u);
    const std::uint64_t before = lab.registry().round();
    if (vouched) {
      const auto voucher = lab.world.chain(0).give_voucher(lab.registry().time_ms() + 3'600'000);
      QVERIFY(voucher.ok());
      lab.world.set_voucher(2, *voucher);
    }
    lab.world.start(2);
    const auto trained = [&] { return lab.registry().rows().at(2).changed_round > 0; };
    const bool there = lab.world.run_until([&] { return trained() || lab.registry().round() >= before + 12; },
                                           600 * lab_second);
    QVERIFY(there);
    QCOMPARE(trained(), vouched);
    const chain::MemberRecord* member = lab.registry().find(lab.world.id(2));
    QVERIFY(member != nullptr);
    QCOMPARE(lab.registry().is_voter(*member), vouched);
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

void TestChainHolders::a_newcomer_fetches_its_rows_only() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Lab lab(seed, 7, by_turns, nullptr, 6);
    QVERIFY(lab.world.run_to_round(4, 300 * lab_second));
    const std::uint64_t before = lab.registry().round();
    lab.world.disk(6).anchors.clear();
    lab.world.start(6);  // row 0
    QVERIFY(lab.world.run_until([&] { return lab.world.training(6).view().holds; }, 300 * lab_second));
    QVERIFY(lab.world.run_until([&] { return lab.registry(6).round() >= before + 4; }, 300 * lab_second));
    QVERIFY(lab.world.training(6).view().fetched_anchors >= 1);
    QCOMPARE(lab.world.disk(6).anchors.size(), std::size_t{1});
    QCOMPARE(lab.world.seen().wrong_anchors, 0u);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    const chain::MemberRecord* member = lab.registry(6).find(lab.world.id(6));
    QVERIFY(member != nullptr);
    QCOMPARE(member->rows, by_turns(6));
  }
}

// Nine nodes, three of each row; one after the other is killed and started again, two at most at a time.
void TestChainHolders::kills_at_random_stop_no_row_that_has_a_holder() {
  constexpr std::size_t nodes = 9;
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Lab lab(seed, nodes);
    Rng rng(seed);
    QVERIFY(lab.world.run_to_round(3, 300 * lab_second));
    std::vector<std::size_t> off;
    std::size_t kills = 0;
    std::array<std::uint64_t, rows> oldest{};
    for (int event = 0; event < 30; ++event) {
      const std::size_t node = rng.below(nodes);
      if (lab.world.running(node) && off.size() < 2) {
        lab.world.kill(node);
        off.push_back(node);
        ++kills;
      } else if (!off.empty()) {
        lab.world.start(off.front());
        off.erase(off.begin());
      }
      lab.world.run_until([] { return false; }, static_cast<std::int64_t>(5 + rng.below(30)) * lab_second);
      std::size_t alive = 0;
      while (!lab.world.running(alive)) ++alive;
      if (lab.world.chain(alive).history() == nullptr) continue;
      for (std::uint32_t row = 0; row < rows; ++row) oldest[row] = std::max(oldest[row], lab.age(row, alive));
    }
    for (const std::size_t node : off) lab.world.start(node);
    std::uint64_t newest = 0;
    for (std::size_t node = 0; node < nodes; ++node) newest = std::max(newest, lab.world.round(node));
    const bool goes_on = lab.world.run_to_round(newest + 3, 300 * lab_second);
    const std::string how = fmt::format(
        "seed {}: {} kills, round {}, rows carried {}, oldest anchors {} {} {} rounds, {} conflicts, {} "
        "wrong",
        seed, kills, newest, lab.world.seen().rows_carried, oldest[0], oldest[1], oldest[2],
        lab.world.seen().conflicts, lab.world.seen().wrong_anchors);
    qInfo("%s", how.c_str());
    QVERIFY2(goes_on && kills >= 10, how.c_str());
    QVERIFY2(lab.world.seen().conflicts == 0 && lab.world.seen().wrong_anchors == 0, how.c_str());
    QVERIFY2(lab.world.seen().twice == 0, how.c_str());
    // Until a killed holder is marked, after 30 s of silence, its row may lack a majority of its holders.
    QVERIFY2(*std::max_element(oldest.begin(), oldest.end()) <= 8, how.c_str());
  }
}

}  // namespace

// Each comes back from a crash for another row, in the middle of rounds: it moves, fetches the row, and counts there.
void TestChainHolders::nodes_move_between_rows() {
  constexpr std::size_t nodes = 9;
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    std::vector<std::uint32_t> row_of;
    for (std::uint32_t node = 0; node < nodes; ++node) row_of.push_back(node % rows);
    Lab lab(seed, nodes, [&row_of](std::size_t node) { return chain::RowSet::of({row_of[node]}); });
    QVERIFY(lab.world.run_to_round(3, 200 * lab_second));
    Rng rng(seed);
    const auto number_of = [&](std::size_t node) {
      return lab.registry(node == 0 ? 1 : 0).find(lab.world.id(node));
    };
    for (int move = 0; move < 8; ++move) {
      const std::string how = fmt::format("seed {}, move {}", seed, move);
      const auto node = static_cast<std::size_t>(rng.below(nodes));
      if (std::count(row_of.begin(), row_of.end(), row_of[node]) < 2) continue;
      lab.world.run_until([] { return false; }, static_cast<std::int64_t>(rng.below(20)) * lab_second);
      lab.world.kill(node);
      row_of[node] = (row_of[node] + 1 + static_cast<std::uint32_t>(rng.below(rows - 1))) % rows;
      lab.world.start(node);
      const auto arrived = [&] {
        const chain::MemberRecord* member = number_of(node);
        return member->presence == chain::Presence::Active && member->rows.has(row_of[node]);
      };
      QVERIFY2(lab.world.run_until(arrived, 300 * lab_second), how.c_str());
      const std::uint64_t before = lab.world.training(node).view().counted;
      QVERIFY2(lab.world.run_until([&] { return lab.world.training(node).view().counted > before; },
                                   300 * lab_second),
               how.c_str());
      QVERIFY2(lab.world.seen().conflicts == 0 && lab.world.seen().wrong_anchors == 0 &&
                   lab.world.seen().twice == 0,
               how.c_str());
    }
    QVERIFY(lab.world.run_until([&] { return lab.world.agreement_rate() == 1; }, 60 * lab_second));
    for (std::uint32_t row = 0; row < rows; ++row)
      QVERIFY2(lab.error_of_row(row) < 0.2, qPrintable(QString::number(lab.error_of_row(row))));
  }
}

NS_TEST(TestChainHolders)
#include "test_chain_holders.moc"
