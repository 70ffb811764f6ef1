// Blocks and the state of the chain in the words and JSON keys of "chain show" and "status".
#include <QtTest>
#include <nlohmann/json.hpp>

#include "app/node/output/chain_text.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::app;
using namespace neuroshard::chain;

namespace {

CertifiedBlock certified(BlockBody body) {
  BlockHeader header;
  header.height = 9;
  header.previous = samples::filled(40);
  header.time_ms = 1'700'000'000'000;
  header.body = body_root(body, samples::opening);
  const BlockPtr block = make_block(header, std::move(body), samples::opening, samples::network);
  return make_certified(block, {samples::quorum(VoteStep::Commit, block->hash, 9, samples::filled(40)), {}});
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

node::ChainView view_of(const char* standing) {
  node::ChainView view;
  view.genesis = std::string(64, 'a');
  view.height = 57;
  view.block_age = 48.2;
  view.committee = 2;
  view.active_units = 24;
  view.heard_units = 24;
  view.candidates = 1;
  view.standing = standing;
  view.outlook = "certifies";
  return view;
}

bool contains(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("%s\nlacks: %s", text.c_str(), part);
  return false;
}

}  // namespace

class TestChainText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_result_names_rows_and_signers();
  void statements_are_named_by_kind();
  void the_state_is_one_sentence();
  void a_candidate_learns_what_is_missing();
  void missing_voters_and_what_to_do_are_named();
  void a_succession_names_the_command_to_agree();
  void without_a_history_nothing_is_said();
};

void TestChainText::a_result_names_rows_and_signers() {
  BlockBody body;
  body.result = ResultSection{6, {RowResult{}, RowResult{}}};
  body.result->rows[0].anchor = samples::filled(0xab);
  body.result->rows[1].row = 1;
  body.result->rows[1].carried = true;
  const CertifiedBlock block = certified(std::move(body));
  const std::string text = joined(block_lines(block));
  QVERIFY(contains(text, "Block 9 (result), signed by 3 nodes"));
  QVERIFY(contains(text, "round 6, row 0: anchor abababab"));
  QVERIFY(contains(text, "round 6, row 1: carried"));
  const auto json = block_json(block);
  QCOMPARE(json["kind"].get<std::string>(), std::string("result"));
  QCOMPARE(json["view"].get<int>(), 3);
  QVERIFY(json["signers"] == nlohmann::ordered_json({1, 2, 3}));
  QVERIFY(json["result"]["rows"][1]["anchor"].is_null());
  QVERIFY(json["result"]["rows"][1]["carried"].get<bool>());
}

void TestChainText::statements_are_named_by_kind() {
  BlockBody body;
  body.statements = samples::statements_of_each_kind();
  body.silent = {4};
  const CertifiedBlock block = certified(std::move(body));
  const auto json = block_json(block);
  std::string kinds;
  for (const auto& one : json["statements"]) kinds += one["kind"].get<std::string>() + " ";
  QCOMPARE(kinds, std::string("register register vouch away back leave commit revoke move offer offer "));
  QVERIFY(json["statements"][8]["rows"] == nlohmann::ordered_json({0, 9}));
  QCOMPARE(json["statements"][9]["memory_tiers"].get<int>(), 33);
  QVERIFY(!json["statements"][9].contains("million_flops"));
  QCOMPARE(json["statements"][10]["million_flops"].get<int>(), 1500);
  QVERIFY(json["silent"] == nlohmann::ordered_json({4}));
  const std::string text = joined(block_lines(block));
  for (const char* part : {"(members)", "silent    member 4", "  register  ", "  leave     "})
    QVERIFY(contains(text, part));
}

void TestChainText::the_state_is_one_sentence() {
  QCOMPARE(chain_view_text(view_of("voter")),
           std::string("block 57, 48 s old; 24 of 24 units heard, committee of 2 nodes, 1 candidate; "
                       "this node votes"));
  QVERIFY(contains(chain_view_text(view_of("")), "this node is no member yet"));
  QVERIFY(contains(chain_view_text(view_of("away")), "this node is away"));
  QVERIFY(contains(chain_view_text(view_of("revoked")), "the wallet of this node has revoked it"));
}

void TestChainText::a_candidate_learns_what_is_missing() {
  node::ChainView view = view_of("candidate");
  view.contributions = 1;
  view.contributions_needed = 2;
  QVERIFY(contains(chain_view_text(view), "a candidate with 1 of 2 contributions"));
  QVERIFY(chain_view_text(view).find("voucher") == std::string::npos);
  view.needs_voucher = true;
  QVERIFY(contains(chain_view_text(view), "needs a voucher from a voter"));
}

void TestChainText::missing_voters_and_what_to_do_are_named() {
  node::ChainView view = view_of("voter");
  view.heard_units = 12;
  view.block_due = view.stalled = true;
  view.missing = {std::string(64, 'b')};
  view.missing_count = 3;
  view.outlook = "needs_a_person";
  view.others = {{std::string(64, 'c'), 2}};
  const std::string text = chain_view_text(view);
  for (const char* part :
       {"the next one stands still", "12 of 24 units heard", "not heard: bbbbbbbbbbbb… and 2 more",
        "start the missing ones", "\"neuroshardd network continue --without NODE\"",
        "2 nodes with another history cccccccccccc…"})
    QVERIFY(contains(text, part));
  const auto json = chain_view_json(view);
  QCOMPARE(json["outlook"].get<std::string>(), std::string("needs_a_person"));
  QVERIFY(json["asks_succession"].is_null());
  // The person of a candidate has nothing to decide.
  view.standing = "candidate";
  QVERIFY(contains(chain_view_text(view), "start the missing ones"));
  QVERIFY(chain_view_text(view).find("network continue") == std::string::npos);
}

void TestChainText::a_succession_names_the_command_to_agree() {
  node::ChainView view = view_of("voter");
  view.asks_succession = std::string(64, 'e');
  QVERIFY(contains(chain_view_text(view), "\"neuroshardd network continue --agree\""));
}

void TestChainText::without_a_history_nothing_is_said() {
  QVERIFY(chain_view_text({}).empty());
  QVERIFY(chain_view_json({}).is_null());
}

NS_TEST(TestChainText)
#include "test_chain_text.moc"
