// Rows that can be taken back: how long, by which evidence, and what becomes of the row, its round and the wallets.
#include <QtTest>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

namespace {

constexpr std::size_t nodes = 6;  // two of each of three rows

ChainRules holder_rules() {
  return small_rules(VotersMode::Invited, 3);
}

struct Holders {
  Holders() : chain(holder_rules()) {
    all = chain.add_nodes(nodes);
    for (const std::size_t node : all)
      chain.set_rows(node, RowSet::of({static_cast<std::uint32_t>(node % 3)}));
    if (!chain.begin(all).ok()) qFatal("no genesis");
  }
  using Change = std::function<void(Vector*)>;
  // change: of each vector, which is signed after it.
  BlockBody closing(const Change& change) const {
    std::vector<testing::Work> works;
    for (const std::size_t node : all)
      if (chain.member(node) != nullptr) works.push_back({node});
    BlockBody body;
    body.close = chain.close(works);
    for (Vector& vector : body.close->vectors) {
      if (!change) continue;
      change(&vector);
      sign_vector(vector, chain.key(chain.node_of(vector.voter)), chain.rules().network);
    }
    return body;
  }
  bool close(const Change& change = nullptr) { return chain.append(closing(change)).ok(); }
  std::string refusal_of_close(const Change& change) const { return chain.refusal(closing(change)); }
  bool end() {
    BlockBody body;
    body.result = chain.result();
    return chain.append(body).ok();
  }
  bool round() { return close() && end(); }
  // A node's attestation of this result, and that it is wrong. opening: of the round.
  Evidence accusation(std::size_t node, std::uint64_t round, const Hash256& opening,
                      const RowResult& result) const {
    Attestation attestation;
    attestation.opening = opening;
    attestation.round = round;
    attestation.voter = chain.number(node);
    attestation.rows = {result};
    sign_attestation(attestation, chain.key(node), chain.rules().network);
    FalseResult what{attested_row(attestation, 0), {}, 1000};
    what.proof.fill(7);
    return {chain.key(node).public_key(), what};
  }
  std::string refusal(const Evidence& evidence) const { return chain.refusal(with(evidence)); }
  bool append(const Evidence& evidence) { return chain.append(with(evidence)).ok(); }
  static BlockBody with(const Evidence& evidence) {
    BlockBody body;
    body.evidence = {evidence};
    return body;
  }
  const RowRecord& row(std::uint32_t number) const { return chain.registry().rows()[number]; }

  ChainFixture chain;
  std::vector<std::size_t> all;
};

Holders::Change withheld_by(const std::vector<std::uint32_t>& voters, RowRound what) {
  return [voters, what](Vector* vector) {
    if (std::find(voters.begin(), voters.end(), vector->voter) != voters.end()) vector->withheld = {what};
  };
}

// A round that has a result, and its place.
struct Past {
  std::uint64_t round;
  Hash256 opening;
  ResultSection result;
};
Past made(Holders& holders) {
  const Hash256 opening = holders.chain.registry().opening(holders.chain.hash());
  if (!holders.close()) qFatal("no close");
  Past past{holders.chain.registry().round() + 1, opening, holders.chain.result()};
  if (!holders.end()) qFatal("no result");
  return past;
}

}  // namespace

class TestOpenRows : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_round_is_open_for_two_results() {
    Holders holders;
    const Hash256 genesis = holders.row(0).anchor;
    QVERIFY(holders.close());
    const OpenRow* open = holders.chain.registry().open_row(0, 1);
    QVERIFY(open != nullptr && open->before == genesis && open->before_round == 0 &&
            open->result == Hash256{});
    QVERIFY(open->contributors != Hash256{} && open->most_tokens == 1000 && open->most_norm_bits == 0);
    // Checkers of other wallets than those that hold the row, each of its own.
    QCOMPARE(open->checkers.size(), std::size_t{4});
    for (const std::uint32_t checker : open->checkers)
      QVERIFY(!holders.chain.registry().find(checker)->rows.has(0));
    QCOMPARE(std::set<std::uint32_t>(open->checkers.begin(), open->checkers.end()).size(), std::size_t{4});
    const ResultSection result = holders.chain.result();
    QVERIFY(holders.end());
    QCOMPARE(holders.chain.registry().open_row(0, 1)->result, result_hash(result.rows[0]));
    QVERIFY(holders.round());
    QVERIFY(holders.chain.registry().open_row(0, 1) != nullptr);
    QVERIFY(holders.round());
    QVERIFY(holders.chain.registry().open_row(0, 1) == nullptr);
    QCOMPARE(holders.chain.registry().open_rows().size(), std::size_t{2 * 3});
    // The registry's bytes have them.
    const auto read = Registry::decode(holders.chain.registry().encode());
    QVERIFY(read.ok());
    QCOMPARE((*read)->root(), holders.chain.registry().root());
    QVERIFY((*read)->open_rows() == holders.chain.registry().open_rows());
  }

  void networks_whose_members_hold_all_rows_have_none() {
    ChainFixture chain(small_rules(VotersMode::Invited, 1));
    const auto all = chain.add_nodes(4);
    QVERIFY(chain.begin(all).ok());
    BlockBody body;
    body.close = chain.close({{all[0]}, {all[1]}});
    QVERIFY(chain.append(body).ok());
    QVERIFY(chain.registry().open_rows().empty());
  }

  void a_wrong_row_returns_to_the_anchor_before_it() {
    Holders holders;
    QVERIFY(holders.round());
    const RowRecord before = holders.row(0), other = holders.row(1);
    const Past wrong = made(holders);
    QVERIFY(holders.row(0).anchor != before.anchor);
    const Evidence evidence = holders.accusation(0, wrong.round, wrong.opening, wrong.result.rows[0]);
    QVERIFY(evidence_holds(evidence, holders.chain.rules().network));
    const std::size_t bytes = encode_evidence(evidence).size();
    QVERIFY(bytes <= max_evidence_bytes);
    const auto again = decode_evidence(encode_evidence(evidence));
    QVERIFY(again.ok() && *again == evidence);
    QVERIFY(holders.append(evidence));
    QCOMPARE(holders.row(0).anchor, before.anchor);
    QCOMPARE(holders.row(0).changed_round, before.changed_round);
    QVERIFY(holders.row(0).norm_bits == before.norm_bits);
    QVERIFY(holders.row(1).anchor != other.anchor);  // others stay
    // One wrong result may be a bit that flipped.
    QVERIFY(holders.chain.member(0) != nullptr);
    QCOMPARE(holders.chain.registry().strikes().size(), std::size_t{1});
    // The round in progress began with the wrong anchor: the row is carried, and the round after it counts again.
    QVERIFY(holders.close());
    QVERIFY(holders.chain.registry().closed()->contributors[0].empty());
    QVERIFY(!holders.chain.registry().closed()->contributors[1].empty());
    QVERIFY(holders.end());
    QCOMPARE(holders.row(0).anchor, before.anchor);
    QVERIFY(holders.round());
    QVERIFY(holders.row(0).anchor != before.anchor);
  }

  void what_was_made_of_a_wrong_row_goes_with_it() {
    Holders holders;
    QVERIFY(holders.round());
    const RowRecord before = holders.row(0);
    const Past wrong = made(holders);
    QVERIFY(holders.round());
    QVERIFY(holders.close());  // and a third round is closed
    QVERIFY(holders.append(holders.accusation(0, wrong.round, wrong.opening, wrong.result.rows[0])));
    QCOMPARE(holders.row(0).anchor, before.anchor);
    QVERIFY(holders.row(0).norm_bits == before.norm_bits);
    QVERIFY(holders.chain.registry().closed()->contributors[0].empty());
    QVERIFY(holders.end());
    QCOMPARE(holders.row(0).anchor, before.anchor);
  }

  void two_wallets_with_the_same_wrong_result_are_expelled() {
    Holders holders;
    const Past wrong = made(holders);
    QVERIFY(holders.append(holders.accusation(0, wrong.round, wrong.opening, wrong.result.rows[0])));
    QVERIFY(holders.append(holders.accusation(3, wrong.round, wrong.opening, wrong.result.rows[0])));
    for (const std::size_t node : {std::size_t{0}, std::size_t{3}}) {
      QVERIFY(holders.chain.member(node) == nullptr);
      QVERIFY(holders.chain.wallet(node)->expelled);
    }
    QVERIFY(holders.chain.member(1) != nullptr);
  }

  void a_second_wrong_result_expels() {
    Holders holders;
    // Not certified: the other holder attests the right one.
    const auto lie = [&] {
      const Hash256 opening = holders.chain.registry().opening(holders.chain.hash());
      if (!holders.close()) qFatal("no close");
      RowResult result = holders.chain.result().rows[0];
      result.anchor.fill(99);
      const std::uint64_t round = holders.chain.registry().round() + 1;
      const Hash256 right = holders.row(0).anchor;
      if (!holders.append(holders.accusation(0, round, opening, result))) qFatal("no block");
      QCOMPARE(holders.row(0).anchor, right);
      if (!holders.end()) qFatal("no result");
    };
    lie();
    QVERIFY(holders.chain.member(0) != nullptr);
    lie();
    QVERIFY(holders.chain.member(0) == nullptr);
    QVERIFY(holders.chain.wallet(0)->expelled);
    QVERIFY(holders.chain.member(3) != nullptr);
  }

  void strikes_are_forgotten_after_sixty_four_rounds() {
    Holders holders;
    const Past wrong = made(holders);
    QVERIFY(holders.append(holders.accusation(0, wrong.round, wrong.opening, wrong.result.rows[0])));
    for (std::uint64_t round = 0; round < strike_rounds; ++round) QVERIFY(holders.round());
    QCOMPARE(holders.chain.registry().strikes().size(), std::size_t{1});
    QVERIFY(holders.round());
    QVERIFY(holders.chain.registry().strikes().empty());
  }

  void evidence_that_does_not_belong_to_a_row_is_refused() {
    Holders holders;
    const Past past = made(holders);
    const RowResult result = past.result.rows[0];
    const Evidence good = holders.accusation(0, past.round, past.opening, result);
    QVERIFY(holders.refusal(good).empty());
    // Another voter, a row that it does not hold, another round, another history.
    Evidence evidence = good;
    std::get<FalseResult>(evidence.what).attested.voter = holders.chain.number(1);
    QVERIFY(!holders.refusal(evidence).empty());
    QVERIFY(!holders.refusal(holders.accusation(0, past.round, past.opening, past.result.rows[1])).empty());
    QVERIFY(!holders.refusal(holders.accusation(0, past.round + 1, past.opening, result)).empty());
    Hash256 elsewhere{};
    elsewhere.fill(1);
    QVERIFY(!holders.refusal(holders.accusation(0, past.round, elsewhere, result)).empty());
    // A member that gave up the row answers for what it attested.
    Holders moved;
    const Past before = made(moved);
    const Evidence lie = moved.accusation(0, before.round, before.opening, before.result.rows[0]);
    QVERIFY(moved.chain.say(moved.all[0], Move{RowSet::of({1}), true}));
    QVERIFY(moved.refusal(lie).empty());
    QVERIFY(moved.append(lie));
    QCOMPARE(moved.chain.registry().strikes().size(), std::size_t{1});
    // A signature that does not hold, and a path to another result.
    evidence = good;
    std::get<FalseResult>(evidence.what).attested.signature[0] ^= 1;
    QVERIFY(!holders.refusal(evidence).empty());
    evidence = good;
    std::get<FalseResult>(evidence.what).attested.result.anchor[0] ^= 1;
    QVERIFY(!holders.refusal(evidence).empty());
    // The same twice, and one whose row is settled.
    QVERIFY(holders.append(good));
    QVERIFY(!holders.refusal(good).empty());
    Holders later;
    const Past old = made(later);
    for (std::uint64_t i = 0; i < rounds_to_settle; ++i) QVERIFY(later.round());
    QVERIFY(!later.refusal(later.accusation(0, old.round, old.opening, old.result.rows[0])).empty());
  }

  // Two close sections later the row returns, if enough of its checkers say so then.
  void a_withheld_result_is_taken_back() {
    for (std::size_t reports = 0; reports <= withheld_to_take_back; ++reports) {
      Holders holders;
      QVERIFY(holders.round());
      const RowRecord before = holders.row(0);
      const Past past = made(holders);
      const std::vector<std::uint32_t> checkers = holders.chain.registry().open_row(0, past.round)->checkers;
      QCOMPARE(checkers.size(), std::size_t{4});  // all wallets without the row
      // Those of the next round call others, and change nothing.
      QVERIFY(holders.close(withheld_by(checkers, {0, past.round})));
      QVERIFY(holders.end());
      QVERIFY(holders.row(0).anchor != before.anchor);
      const Hash256 newest = holders.row(0).anchor;
      const std::vector<std::uint32_t> some(checkers.end() - static_cast<std::ptrdiff_t>(reports),
                                            checkers.end());
      QVERIFY(holders.close(withheld_by(some, {0, past.round})));
      const bool back = reports == withheld_to_take_back;
      QCOMPARE(holders.row(0).anchor, back ? before.anchor : newest);
      QCOMPARE(holders.row(0).norm_bits == before.norm_bits, back);
      QCOMPARE(holders.chain.registry().closed()->contributors[0].empty(), back);
      QVERIFY(!holders.chain.registry().closed()->contributors[1].empty());
      QVERIFY(holders.chain.registry().strikes().empty());
      QVERIFY(holders.end());
      QCOMPARE(holders.row(0).anchor == before.anchor, back);
      QCOMPARE(holders.chain.registry().members().size(), nodes);
      QVERIFY(holders.round());
      QVERIFY(holders.row(0).changed_round > past.round);
      const auto read = Registry::decode(holders.chain.registry().encode());
      QVERIFY(read.ok() && (*read)->root() == holders.chain.registry().root());
    }
  }

  void only_checkers_say_that_a_result_is_withheld() {
    Holders holders;
    const Past past = made(holders);
    const auto refusal = [&](std::size_t node, RowRound what) {
      return holders.refusal_of_close(withheld_by({holders.chain.number(node)}, what));
    };
    QVERIFY(refusal(1, {0, past.round}).empty());
    QVERIFY(!refusal(0, {0, past.round}).empty());  // holds the row
    QVERIFY(!refusal(1, {1, past.round}).empty());
    QVERIFY(!refusal(1, {0, past.round + 1}).empty());  // in progress
    QVERIFY(!refusal(1, {0, past.round + 7}).empty());
    QVERIFY(!refusal(1, {7, past.round}).empty());
    for (std::uint64_t i = 0; i < rounds_to_settle; ++i) QVERIFY(holders.round());
    QVERIFY(!refusal(1, {0, past.round}).empty());  // settled
  }

  void of_many_wallets_six_are_drawn() {
    ChainFixture chain(holder_rules());
    const auto all = chain.add_nodes(24);
    for (const std::size_t node : all)
      chain.set_rows(node, RowSet::of({static_cast<std::uint32_t>(node % 3)}));
    QVERIFY(chain.begin(all).ok());
    std::set<std::vector<std::uint32_t>> drawn;
    for (int round = 0; round < 4; ++round) {
      BlockBody body;
      std::vector<testing::Work> works;
      for (const std::size_t node : all) works.push_back({node});
      body.close = chain.close(works);
      QVERIFY(chain.append(body).ok());
      const OpenRow* open = chain.registry().open_row(0, chain.registry().round() + 1);
      QVERIFY(open != nullptr);
      QCOMPARE(std::set<std::uint32_t>(open->checkers.begin(), open->checkers.end()).size(), most_checkers);
      drawn.insert(open->checkers);
      body = {};
      body.result = chain.result();
      QVERIFY(chain.append(body).ok());
    }
    QCOMPARE(drawn.size(), std::size_t{4});
  }

  void a_carried_result_is_no_false_one() {
    Holders holders;
    const Past past = made(holders);
    const Evidence evidence = holders.accusation(0, past.round, past.opening, carried_row(0));
    QVERIFY(!decode_evidence(encode_evidence(evidence)).ok());
  }
};

NS_TEST(TestOpenRows)
#include "test_open_rows.moc"
