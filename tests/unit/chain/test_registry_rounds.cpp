// Rounds in the registry: what a close and a result must be, and what they change.
#include <QtTest>

#include "core/crypto/merkle.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::small_rules;
using neuroshard::chain::testing::Work;

namespace {

struct Four : ChainFixture {
  explicit Four(ChainRules rules = small_rules()) : ChainFixture(std::move(rules)) {
    nodes = add_nodes(4);
    NS_CHECK(begin(nodes).ok());
  }
  std::vector<Work> works() const { return {{nodes[0]}, {nodes[1]}, {nodes[2]}, {nodes[3]}}; }
  BlockBody closing() const {
    BlockBody body;
    body.close = close(works());
    return body;
  }
  void sign_again(CloseSection& close) const {
    for (Vector& vector : close.vectors) sign_vector(vector, key(node_of(vector.voter)), rules().network);
  }
  // Of a body whose vectors were changed.
  std::string refused(BlockBody body) const {
    sign_again(*body.close);
    return refusal(body);
  }
  std::vector<std::size_t> nodes;
};

BlockBody with(ResultSection result) {
  BlockBody body;
  body.result = std::move(result);
  return body;
}

}  // namespace

class TestChainRegistryRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_round_takes_a_close_and_a_result();
  void a_close_is_for_the_round_in_progress();
  void a_close_has_vectors_of_more_than_two_thirds();
  void vectors_are_of_the_committee_once_each();
  void vectors_fit_the_round();
  void every_contribution_is_in_a_vector();
  void contributions_are_of_members_once_each();
  void members_contribute_from_the_next_opening_block_on();
  void tokens_are_bounded_by_the_rounds_since_the_last_anchor();
  void a_wrong_reveal_makes_the_block_invalid();
  void signatures_of_a_close_are_checked();
  void a_result_has_the_rounds_rows();
  void a_row_without_contributors_is_carried();
  void norms_are_finite_and_kept_eight_deep();
  void fragments_close_their_rows_in_turn();
  void the_beacon_follows_from_the_committees_reveals();
  void presence_changes_fit_between_close_and_result();
  void a_registry_is_read_back_with_its_root();
  void damaged_registries_are_refused();
  void a_block_with_another_root_is_refused();
};

void TestChainRegistryRounds::a_round_takes_a_close_and_a_result() {
  Four chain;
  QVERIFY(chain.append(chain.closing()).ok());
  QVERIFY(chain.registry().closed().has_value());
  QCOMPARE(chain.registry().closed()->height, 1u);
  QCOMPARE(chain.registry().closed()->contributors,
           (std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {0, 1, 2, 3}}));
  QCOMPARE(chain.registry().round(), 0u);
  const ResultSection result = chain.result();
  QVERIFY(chain.append(with(result)).ok());
  const Registry& now = chain.registry();
  QCOMPARE(now.round(), 1u);
  QVERIFY(!now.closed());
  QVERIFY(now.opening(chain.hash()) == chain.hash());
  for (std::uint32_t row = 0; row < 2; ++row) {
    QVERIFY(now.rows()[row].anchor == result.rows[row].anchor);
    QCOMPARE(now.rows()[row].changed_round, 1u);
  }
  QCOMPARE(chain.member(chain.nodes[0])->contributions, 1u);
  QCOMPARE(chain.member(chain.nodes[0])->last_round, 1u);
  QCOMPARE(chain.wallet(chain.nodes[0])->counted_tokens, 500u);
  const Hash256 opening = chain.hash();
  QVERIFY(chain.say(chain.nodes[0], Away{}));
  QVERIFY(chain.registry().opening(chain.hash()) == opening);
}

void TestChainRegistryRounds::a_close_is_for_the_round_in_progress() {
  Four chain;
  BlockBody body = chain.closing();
  const BlockBody first = body;
  body.close->round = 2;
  QCOMPARE(chain.refused(body), std::string("the block closes another round"));
  QVERIFY(chain.append(first).ok());
  QCOMPARE(chain.refusal(first), std::string("the round is closed already"));
  QVERIFY(chain.append(with(chain.result())).ok());
  QCOMPARE(chain.refusal(first), std::string("the block closes another round"));
  body = first;  // of the round before, named as this one's
  body.close->round = 2;
  for (Vector& vector : body.close->vectors) vector.round = 2;
  QCOMPARE(chain.refused(body), std::string("a vector is for another round"));
  body = chain.closing();
  body.result = chain.registry().closed() ? chain.result() : ResultSection{2, {}};
  QCOMPARE(chain.refusal(body), std::string("a block closes a round or has a result, not both"));
}

void TestChainRegistryRounds::a_close_has_vectors_of_more_than_two_thirds() {
  Four chain;
  BlockBody body;
  body.close = chain.close(chain.works(), {}, {{chain.nodes[0], chain.nodes[1]}});
  QCOMPARE(chain.refusal(body), std::string("a close has vectors of too few units"));
  body.close = chain.close(chain.works(), {}, {{chain.nodes[0], chain.nodes[1], chain.nodes[2]}});
  QCOMPARE(chain.refusal(body), std::string());
  // Of those that are active: a voter that went away is not waited for.
  QVERIFY(chain.say(chain.nodes[3], Away{}));
  QVERIFY(chain.say(chain.nodes[2], Away{}));
  body.close = chain.close(chain.works(), {}, {{chain.nodes[0], chain.nodes[1]}});
  QCOMPARE(chain.refusal(body), std::string());
  body.close = chain.close(chain.works(), {}, {{chain.nodes[0], chain.nodes[1], chain.nodes[2]}});
  QCOMPARE(chain.refusal(body), std::string("a close has too many vectors"));
}

void TestChainRegistryRounds::vectors_are_of_the_committee_once_each() {
  Four chain;
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  BlockBody body;
  body.close = chain.close(chain.works(), {}, {{chain.nodes[0], chain.nodes[1], chain.nodes[2], candidate}});
  QCOMPARE(chain.refusal(body), std::string("a vector is not from the committee"));
  body = chain.closing();
  body.close->vectors[1] = body.close->vectors[0];
  QCOMPARE(chain.refusal(body), std::string("a close's vectors are not ascending by voter"));
  body = chain.closing();
  std::swap(body.close->vectors[1], body.close->vectors[0]);
  QCOMPARE(chain.refusal(body), std::string("a close's vectors are not ascending by voter"));
}

void TestChainRegistryRounds::vectors_fit_the_round() {
  Four chain;
  BlockBody body = chain.closing();
  body.close->vectors[0].opening[0] ^= 1;
  QCOMPARE(chain.refused(body), std::string("a vector is for another round"));
  body = chain.closing();
  body.close->vectors[0].members = {0, 1, 1, 3};
  QCOMPARE(chain.refused(body), std::string("a vector lists members twice or unknown ones"));
  body.close->vectors[0].members = {0, 1, 2, 4};
  QCOMPARE(chain.refused(body), std::string("a vector lists members twice or unknown ones"));
  body = chain.closing();
  body.close->vectors[0].payloads.pop_back();
  QCOMPARE(chain.refused(body), std::string("a vector has other rows or members than the round"));
  body = chain.closing();
  body.close->vectors[0].payloads[1] = Bitmap(3);
  QCOMPARE(chain.refused(body), std::string("a vector has other rows or members than the round"));
}

void TestChainRegistryRounds::every_contribution_is_in_a_vector() {
  Four chain;
  Received received;
  received.lists = [&](std::size_t, std::size_t node) { return node != chain.nodes[3]; };
  BlockBody body;
  body.close = chain.close(chain.works(), received);
  QCOMPARE(chain.refusal(body), std::string("a contribution is in no vector of the close"));
  received.lists = [&](std::size_t voter, std::size_t node) {
    return node != chain.nodes[3] || voter == chain.nodes[0];
  };
  body.close = chain.close(chain.works(), received);
  QCOMPARE(chain.refusal(body), std::string());
}

void TestChainRegistryRounds::contributions_are_of_members_once_each() {
  Four chain;
  BlockBody body = chain.closing();
  body.close->contributions[1] = body.close->contributions[0];
  QCOMPARE(chain.refusal(body), std::string("a close's contributions are not ascending by member"));
  body = chain.closing();
  body.close->contributions[3].member = 9;
  QCOMPARE(chain.refusal(body), std::string("a contribution is from no member"));
}

void TestChainRegistryRounds::members_contribute_from_the_next_opening_block_on() {
  Four chain;
  const std::size_t node = chain.add_node();
  QVERIFY(chain.join(node));
  std::vector<Work> works = chain.works();
  works.push_back({node});
  BlockBody body;
  body.close = chain.close(works);
  QCOMPARE(chain.refusal(body),
           std::string("a contribution is from a member that came after the round began"));
  QVERIFY(chain.round(chain.works()));
  body.close = chain.close(works);
  QCOMPARE(chain.refusal(body), std::string());
}

void TestChainRegistryRounds::tokens_are_bounded_by_the_rounds_since_the_last_anchor() {
  Four chain;
  const auto closing = [&](std::uint64_t tokens) {
    BlockBody body;
    body.close = chain.close({{chain.nodes[0], tokens}, {chain.nodes[1]}});
    return body;
  };
  QCOMPARE(chain.refusal(closing(1000)), std::string());
  QCOMPARE(chain.refusal(closing(1001)),
           std::string("a contribution claims more tokens than a round allows"));
  // Nobody contributes: all rows are carried, and the bound grows by a round.
  QVERIFY(chain.round({}));
  QCOMPARE(chain.refusal(closing(2000)), std::string());
  QCOMPARE(chain.refusal(closing(2001)),
           std::string("a contribution claims more tokens than a round allows"));
}

void TestChainRegistryRounds::a_wrong_reveal_makes_the_block_invalid() {
  Four chain;
  BlockBody body = chain.closing();
  Contribution wrong = chain.contribution(chain.nodes[0], 500);
  wrong.reveal[5] ^= 1;
  sign_contribution(wrong, chain.key(chain.nodes[0]), chain.rules().network);
  const std::uint32_t number = chain.number(chain.nodes[0]);
  body.close->contributions[number] = entry_of(wrong, number);
  QCOMPARE(chain.refusal(body), std::string("a contribution reveals a wrong value"));
  // Over a gap of rounds, and from the value revealed before.
  QVERIFY(chain.round_of({chain.nodes[1]}));
  QVERIFY(chain.round_of({chain.nodes[1]}));
  QVERIFY(chain.round_of({chain.nodes[0], chain.nodes[1]}));
  QCOMPARE(chain.member(chain.nodes[0])->revealed_round, 3u);
}

void TestChainRegistryRounds::signatures_of_a_close_are_checked() {
  Four chain;
  BlockBody body = chain.closing();
  body.close->vectors[2].signature[7] ^= 1;
  QCOMPARE(chain.refusal(body), std::string("a vector's signature does not hold"));
  body = chain.closing();
  body.close->contributions[2].tokens += 1;
  QCOMPARE(chain.refusal(body), std::string("a contribution's signature does not hold"));
  // Nothing is verified of a close that is wrong in structure.
  struct Counting : SignatureChecks {
    std::size_t calls = 0;
    bool vector(const VectorClaim& claim, const crypto::PublicKey& node, const Hash256& network) override {
      ++calls;
      return SignatureChecks::vector(claim, node, network);
    }
  } counting;
  chain.set_checks(counting);
  body.close->contributions.back().tokens = 1'000'000;
  QVERIFY(!chain.refusal(body).empty());
  QCOMPARE(counting.calls, std::size_t{0});
  QCOMPARE(chain.refusal(chain.closing()), std::string());
  QCOMPARE(counting.calls, std::size_t{4});
}

void TestChainRegistryRounds::a_result_has_the_rounds_rows() {
  Four chain;
  QCOMPARE(chain.refusal(with(ResultSection{1, {}})), std::string("there is no closed round"));
  QVERIFY(chain.append(chain.closing()).ok());
  const ResultSection right = chain.result();
  QCOMPARE(chain.refusal(with(right)), std::string());
  ResultSection result = right;
  result.rows.pop_back();
  QCOMPARE(chain.refusal(with(result)), std::string("the result has other rows than the round"));
  result = right;
  result.rows[1].row = 0;
  QCOMPARE(chain.refusal(with(result)), std::string("the result has other rows than the round"));
  result = right;
  result.round = 2;
  QCOMPARE(chain.refusal(with(result)), std::string("the result is of another round"));
  result = right;
  result.rows[0].carried = true;
  QCOMPARE(chain.refusal(with(result)), std::string("a carried row has a result"));
  result = right;
  result.rows[0].anchor = {};
  QCOMPARE(chain.refusal(with(result)), std::string("a row's anchor or norm is not valid"));
}

void TestChainRegistryRounds::a_row_without_contributors_is_carried() {
  Four chain;
  Received received;
  received.payload = [](std::size_t, std::size_t, std::size_t row) { return row == 0; };
  BlockBody body;
  body.close = chain.close(chain.works(), received);
  QVERIFY(chain.append(body).ok());
  QVERIFY(chain.registry().closed()->contributors[1].empty());
  const Hash256 anchor = chain.registry().rows()[1].anchor;
  ResultSection result = chain.result();
  QVERIFY(result.rows[1].carried);
  ResultSection wrong = result;
  wrong.rows[1] = wrong.rows[0];
  wrong.rows[1].row = 1;
  QCOMPARE(chain.refusal(with(wrong)), std::string("a row without contributors is not carried"));
  QVERIFY(chain.append(with(result)).ok());
  QVERIFY(chain.registry().rows()[1].anchor == anchor);
  QCOMPARE(chain.registry().rows()[1].changed_round, 0u);
  QCOMPARE(chain.registry().rows()[1].norm_bits[0], 0u);
  QCOMPARE(chain.registry().round(), 1u);
}

void TestChainRegistryRounds::norms_are_finite_and_kept_eight_deep() {
  Four chain;
  QVERIFY(chain.append(chain.closing()).ok());
  for (const std::uint64_t bits :
       {0x7ff0000000000000ull, 0x7ff8000000000000ull, 0x8000000000000000ull, 0xbff0000000000000ull})
    QCOMPARE(chain.refusal(with(chain.result(bits))), std::string("a row's anchor or norm is not valid"));
  QVERIFY(chain.append(with(chain.result(100))).ok());
  for (std::uint64_t bits = 101; bits < 110; ++bits) {
    QVERIFY(chain.append(chain.closing()).ok());
    QVERIFY(chain.append(with(chain.result(bits))).ok());
  }
  QCOMPARE(chain.registry().rows()[0].norm_bits,
           (std::array<std::uint64_t, 8>{109, 108, 107, 106, 105, 104, 103, 102}));
}

void TestChainRegistryRounds::fragments_close_their_rows_in_turn() {
  ChainRules rules = small_rules(VotersMode::Invited, 3);
  rules.fragments = 2;
  Four chain(rules);
  QVERIFY(chain.round(chain.works()));  // round 1: row 1
  QCOMPARE(chain.registry().rows()[0].changed_round, 0u);
  QCOMPARE(chain.registry().rows()[1].changed_round, 1u);
  QVERIFY(chain.round(chain.works()));  // round 2: rows 0 and 2
  QCOMPARE(chain.registry().rows()[0].changed_round, 2u);
  QCOMPARE(chain.registry().rows()[1].changed_round, 1u);
  QCOMPARE(chain.registry().rows()[2].changed_round, 2u);
  // Two rounds of work since row 1 changed.
  BlockBody body;
  body.close = chain.close({{chain.nodes[0], 2000}});
  QCOMPARE(chain.refusal(body), std::string());
}

void TestChainRegistryRounds::the_beacon_follows_from_the_committees_reveals() {
  Four chain;
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  QVERIFY(chain.round(chain.works()));
  const Hash256 before = chain.registry().beacon();
  const auto beacon_with = [&](const std::vector<Work>& works) {
    BlockBody body;
    body.close = chain.close(works);
    const auto proposed =
        apply_body(chain.rules(), chain.registry(), chain.hash(), chain.registry().time_ms() + 1, body,
                   *std::make_unique<SignatureChecks>());
    return proposed->registry->beacon();
  };
  std::vector<Work> works = chain.works();
  const Hash256 all = beacon_with(works);
  QVERIFY(all != before);
  works.push_back({candidate});
  QVERIFY(beacon_with(works) == all);  // a candidate has no influence
  works.erase(works.begin());
  QVERIFY(beacon_with(works) != all);
  QVERIFY(beacon_with({}) != before);  // it moves on in any case
}

void TestChainRegistryRounds::presence_changes_fit_between_close_and_result() {
  Four chain;
  QVERIFY(chain.append(chain.closing()).ok());
  QVERIFY(chain.say(chain.nodes[0], Away{}));
  QVERIFY(chain.registry().closed().has_value());
  QVERIFY(chain.append(with(chain.result())).ok());
  QCOMPARE(chain.registry().round(), 1u);
}

void TestChainRegistryRounds::a_registry_is_read_back_with_its_root() {
  Four chain;
  const std::size_t node = chain.add_node();
  QVERIFY(chain.say(node, chain.registration(node, chain.nodes[0], 4)));
  QVERIFY(chain.say(chain.nodes[3], Away{}));
  QVERIFY(chain.say(chain.nodes[1], Commit{BeaconChain(Hash256{5}, 4, 100).commitment()}));
  QVERIFY(chain.round({{chain.nodes[0]}, {chain.nodes[1]}}));
  for (int block = 0; block < 2; ++block) {  // also with a closed round
    const Bytes bytes = chain.registry().encode();
    const auto read = Registry::decode(bytes);
    QVERIFY(read.ok());
    QVERIFY((*read)->root() == chain.registry().root());
    QVERIFY((*read)->encode() == bytes);
    QVERIFY((*read)->members() == chain.registry().members());
    QVERIFY((*read)->find(crypto::node_id(chain.key(node).public_key())) != nullptr);
    QVERIFY((*read)->wallet(chain.wallet_key(node).public_key()) != nullptr);
    BlockBody body;
    if (block == 0) {
      body.close = chain.close({{chain.nodes[0]}, {node}});
    } else {
      body = with(chain.result());
    }
    SignatureChecks checks;
    const auto next =
        apply_body(chain.rules(), **read, chain.hash(), chain.registry().time_ms() + 1000, body, checks);
    QVERIFY(next.ok());
    QVERIFY(chain.append(body).ok());
    QVERIFY(next->registry->root() == chain.registry().root());
  }
}

void TestChainRegistryRounds::damaged_registries_are_refused() {
  Four chain;
  QVERIFY(chain.append(chain.closing()).ok());
  const Bytes bytes = chain.registry().encode();
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    QVERIFY(!Registry::decode(ByteSpan(bytes).first(size)).ok());
  Bytes changed = bytes;
  changed.push_back(0);
  QVERIFY(!Registry::decode(changed).ok());
  changed.pop_back();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    changed[at] ^= 0x10;
    const auto read = Registry::decode(changed);
    QVERIFY(!read.ok() || ((*read)->encode() == changed && (*read)->root() != chain.registry().root()));
    changed[at] = bytes[at];
  }
}

void TestChainRegistryRounds::a_block_with_another_root_is_refused() {
  Four chain;
  const BlockBody body = chain.closing();
  const BlockPtr right = *chain.propose(body);
  SignatureChecks checks;
  const auto refusal = [&](BlockHeader header, BlockBody changed, const Hash256& opening) {
    const BlockPtr block = make_block(header, std::move(changed), opening, chain.rules().network);
    const auto result = apply_block(chain.rules(), chain.registry(), chain.hash(), *block, checks);
    return result.ok() ? std::string() : result.error().message;
  };
  QCOMPARE(refusal(right->header, body, right->opening), std::string());
  BlockHeader header = right->header;
  header.registry[0] ^= 1;
  QCOMPARE(refusal(header, body, right->opening),
           std::string("the block's registry is not the one that results"));
  header = right->header;
  header.body[0] ^= 1;
  QCOMPARE(refusal(header, body, right->opening), std::string("the block's body is not the header's"));
  header = right->header;
  header.previous[0] ^= 1;
  QCOMPARE(refusal(header, body, right->opening), std::string("the block does not follow the one before"));
  header = right->header;
  header.height = 2;
  QCOMPARE(refusal(header, body, right->opening), std::string("the block does not follow the one before"));
  Hash256 opening = right->opening;
  opening[0] ^= 1;
  QCOMPARE(refusal(right->header, body, opening), std::string("the block is for another round"));
}

NS_TEST(TestChainRegistryRounds)
#include "test_registry_rounds.moc"
