// The formats and hashes of the chain against an independent program (tests/golden/chain_oracle.py): every byte
// is the same for the same inputs.
#include <QtTest>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/chain/attestation.h"
#include "core/chain/beacon.h"
#include "core/chain/detail/close_bytes.h"
#include "core/chain/detail/formats.h"
#include "core/crypto/hash.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using nlohmann::json;
using samples::filled;

namespace {

crypto::Signature signed_with(std::uint8_t value) {
  crypto::Signature signature{};
  signature.fill(value);
  return signature;
}

const std::vector<std::uint32_t> all_members = {1, 5, 9, 12, 13, 14, 15, 16, 300};

ContributionEntry entry(std::uint32_t member) {
  const auto small = static_cast<std::uint8_t>(member % 100);
  return {member,
          900u + small,
          filled(static_cast<std::uint8_t>(10 + small)),
          filled(static_cast<std::uint8_t>(110 + small)),
          filled(static_cast<std::uint8_t>(130 + small)),
          signed_with(static_cast<std::uint8_t>(40 + small))};
}

Hash256 root_of(const std::vector<std::uint32_t>& members) {
  std::vector<Hash256> ids;
  for (const std::uint32_t member : members) ids.push_back(contribution_id(entry(member)));
  return contributions_root(ids);
}

// lacks: whose payload of the second row the voter does not have.
Vector vector(std::uint8_t voter, const std::vector<std::uint32_t>& members, std::uint32_t lacks = 0) {
  Vector vector{filled(50), 6, voter, members, root_of(members), {}, {}};
  vector.payloads.assign(2, Bitmap(members.size()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    vector.payloads[0].set(i);
    if (members[i] != lacks) vector.payloads[1].set(i);
  }
  vector.signature = signed_with(static_cast<std::uint8_t>(200 + voter));
  return vector;
}

Statement statement() {
  return {filled(60), {8, filled(61)}, Away{}, signed_with(62)};
}

Statement revocation() {
  return {filled(60), {8, filled(61)}, Revoke{filled(69)}, signed_with(62)};
}

Statement move() {
  return {filled(60), {8, filled(61)}, Move{RowSet::of({0, 9}), true}, signed_with(62)};
}
Statement offer() {
  return {filled(60), {8, filled(61)}, Offer{33}, signed_with(62)};
}
Statement offer_with_speed() {
  return {filled(60), {8, filled(61)}, Offer{33, 1500}, signed_with(62)};
}

Evidence evidence() {
  const Vote first{VoteStep::Prepare, 9, filled(64), 3, filled(65)},
      second{VoteStep::Prepare, 9, filled(64), 3, filled(67)};
  return {filled(63), TwoVotes{{first, 4, signed_with(66)}, {second, 4, signed_with(68)}}};
}

BlockBody close_body() {
  BlockBody body;
  body.close.emplace();
  body.close->round = 6;
  for (const std::uint32_t member : all_members) body.close->contributions.push_back(entry(member));
  body.close->vectors = {vector(1, all_members, 9), vector(2, {1, 9, 300}), vector(5, {})};
  body.silent = {2, 11};
  body.statements = {statement()};
  body.evidence = {evidence()};
  return body;
}

const std::vector<RowResult> row_results = {{1, false, filled(81), filled(82), 0x3ff0000000000000},
                                            carried_row(4)};

BlockBody result_body() {
  BlockBody body;
  body.result = ResultSection{6, row_results};
  return body;
}

}  // namespace

class TestChainGolden : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void contributions_and_vectors();
  void statements_and_evidence();
  void attestations();
  void beacons_and_lots();
  void blocks();

 private:
  void compare(const char* name, ByteSpan value);
  json golden_;
};

void TestChainGolden::initTestCase() {
  std::ifstream file(std::string(qgetenv("NS_SOURCE_DIR").constData()) + "/tests/golden/chain/values.json");
  golden_ = json::parse(file, nullptr, false);
  QVERIFY(golden_.is_object());
}

void TestChainGolden::compare(const char* name, ByteSpan value) {
  QVERIFY2(golden_.contains(name), name);
  QVERIFY2(golden_[name].get<std::string>() == to_hex(value), name);
}

void TestChainGolden::contributions_and_vectors() {
  std::vector<RowWork> rows = {{1, 900, 4096, filled(3)}, {4, 450, 2048, filled(4)}, {6, 1, 7, filled(5)}};
  compare("work_root", work_root(rows));
  rows.pop_back();
  compare("work_root_of_two", work_root(rows));
  compare("work_root_of_none", work_root({}));
  compare("contribution_id", contribution_id(entry(5)));
  compare("contributions_root", root_of(all_members));
  compare("vector_content", claim_of(vector(1, all_members, 9)).content);
  compare("vector_content_of_none", claim_of(vector(5, {})).content);
  CloseSection close = *close_body().close;
  close.vectors[1].withheld = {{1, 4}};
  close.vectors[2].withheld = {{1, 4}, {1, 5}, {300, 4}};
  compare("vector_content_withheld", claim_of(close.vectors[2]).content);
  compare("close_withheld", encode_close(close));
}

void TestChainGolden::statements_and_evidence() {
  compare("statement", crypto::sha256(encode_statement(statement())));
  compare("revocation", crypto::sha256(encode_statement(revocation())));
  compare("move", crypto::sha256(encode_statement(move())));
  compare("offer", crypto::sha256(encode_statement(offer())));
  compare("offer_with_speed", crypto::sha256(encode_statement(offer_with_speed())));
  compare("evidence", crypto::sha256(encode_evidence(evidence())));
}

void TestChainGolden::attestations() {
  compare("attestation", encode_attestation({filled(50), 6, 11, row_results, signed_with(83)}));
  compare("results_root", results_root(row_results));
  const Attestation attestation{filled(50), 6, 11, row_results, signed_with(83)};
  compare("false_result",
          encode_evidence({filled(84), FalseResult{attested_row(attestation, 0), filled(85), 70000}}));
  compare("row_contributors", contributors_hash({{filled(86), filled(87)}, {filled(88), filled(89)}}));
  Bytes rows;
  append_rows(rows, RowSet::of({0, 9, 23, 64}));
  compare("row_set", rows);
}

void TestChainGolden::beacons_and_lots() {
  const BeaconChain chain(filled(9), 4, 1000);
  compare("beacon_tip", chain.commitment().tip);
  compare("beacon_first", *chain.reveal(4));
  compare("beacon_middle", *chain.reveal(500));
  compare("beacon_last", *chain.reveal(1003));
  compare("next_beacon", next_beacon(filled(5), 7, {{filled(1), filled(11)}, {filled(2), filled(12)}}));
  compare("next_beacon_without_reveals", next_beacon(filled(5), 7, {}));
  compare("lot", lot("leader", filled(5), filled(6)));
}

void TestChainGolden::blocks() {
  const std::pair<std::string, BlockBody> bodies[] = {
      {"close", close_body()}, {"result", result_body()}, {"empty", {}}};
  for (const auto& [name, body] : bodies) {
    compare((name + "_body").c_str(), encode_body(body));
    const Hash256 root = body_root(body, filled(50));
    compare((name + "_root").c_str(), root);
    const BlockHeader header{9, filled(1), 1'790'000'000'000, root, filled(2)};
    compare((name + "_hash").c_str(), block_hash(header, filled(7)));
  }
}

NS_TEST(TestChainGolden)
#include "test_golden.moc"
