// A chain's state becomes what people see: entries of rounds with reasons, this node's standing, missing voters,
// other histories, and members named by the beginning of their ids.
#include <QtTest>

#include "core/runtime/chain_report.h"
#include "core/runtime/continuation_call.h"
#include "core/runtime/revocation_call.h"
#include "core/runtime/round_entries.h"
#include "core/runtime/standing.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

chain::ChainTip tip_of(const ChainFixture& chain) {
  return {chain.blocks().back(), chain.registry_ptr(), chain.committee(), {}, {}};
}

// Four founders and a candidate; a round in which one founder's work is late and one is silent.
struct Rounds {
  ChainFixture chain{small_rules(chain::VotersMode::Open, 1)};
  std::vector<std::size_t> founders = chain.add_nodes(4);
  std::size_t candidate = chain.add_node();
  RoundEntries entries{id(founders[0]), 100};

  Rounds() {
    if (!chain.begin(founders).ok() || !chain.join(candidate)) qFatal("no chain");
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  // worker: a further one that contributes.
  void round(std::optional<std::size_t> worker = std::nullopt) {
    chain::BlockBody closing;
    Received received;
    received.payload = [this](std::size_t, std::size_t node, std::size_t) { return node != founders[2]; };
    std::vector<Work> work{{founders[0], 500}, {founders[1], 400}, {founders[2], 300}};
    if (worker) work.push_back({*worker, 300});
    closing.close = chain.close(work, received);
    if (!chain.append(closing).ok()) qFatal("no close");
    const chain::ChainTip before = tip_of(chain);
    chain::BlockBody resulting;
    resulting.result = chain.result();
    if (!chain.append(resulting).ok()) qFatal("no result");
    entries.on_block(before, tip_of(chain), *chain.blocks().back());
  }
  const node::RoundMemberEntry& of(const node::RoundEntry& entry, std::size_t node) const {
    for (const node::RoundMemberEntry& one : entry.who)
      if (one.id == to_hex(id(node))) return one;
    qFatal("not in the entry");
  }
};

ChainMoment moment_of(const Rounds& rounds) {
  ChainMoment now;
  now.registry = rounds.chain.registry_ptr();
  now.self = rounds.id(rounds.founders[0]);
  now.voters = chain::VotersMode::Open;
  now.at = MonotonicTime(std::chrono::hours(1));
  now.wall = WallTime(std::chrono::milliseconds(now.registry->time_ms() + 7000));
  now.chain.genesis.fill(1);
  now.chain.member = now.chain.voter = now.chain.active = true;
  now.chain.active_units = now.chain.heard_units = 48;
  now.training.holds = true;
  return now;
}

node::RoundsView view_of(ChainReport& report, const ChainMoment& now) {
  node::RoundsView view;
  report.fill(view, now);
  return view;
}

}  // namespace

class TestChainReport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_entry_names_members_and_reasons();
  void keys_that_only_registered_are_no_members();
  void a_key_that_only_registered_is_a_stranger();
  void the_step_gives_shares_and_what_was_left_out();
  void the_rule_says_what_clipped();
  void an_entry_is_handed_out_once();
  void the_chain_is_in_the_view();
  void a_person_is_needed_since();
  void other_weights_or_tokenizer_are_told();
  void members_are_named_by_the_beginning_of_their_ids();
  void a_revoked_node_is_told_what_to_do();
  void a_wallet_asks_what_to_sign();
  void a_part_says_who_checks_it();
};

void TestChainReport::an_entry_names_members_and_reasons() {
  Rounds rounds;
  rounds.round();
  const auto entry = rounds.entries.take(0, 1, nullptr);
  QVERIFY(entry.has_value());
  QVERIFY(entry->fetched);
  QCOMPARE(entry->contributors, 2u);
  QCOMPARE(entry->members, 4u);
  const auto& own = rounds.of(*entry, rounds.founders[0]);
  QVERIFY(own.mine && own.contributed && own.note.empty());
  QCOMPARE(own.tokens, std::uint64_t{500});
  QCOMPARE(own.steps, 5u);
  QCOMPARE(own.standing, std::string("voter"));
  QVERIFY(rounds.of(*entry, rounds.founders[2]).note.find("too few members had its work") !=
          std::string::npos);
  QVERIFY(rounds.of(*entry, rounds.founders[3]).note.find("was not there") != std::string::npos);
}

// Anybody can register keys. Those that have done nothing yet are no members for people.
void TestChainReport::keys_that_only_registered_are_no_members() {
  Rounds rounds;
  for (int i = 0; i < 3; ++i) QVERIFY(rounds.chain.join(rounds.chain.add_node()));
  QCOMPARE(rounds.chain.registry().members().size(), std::size_t{8});
  ChainReport report({100});
  node::RoundsView view = view_of(report, moment_of(rounds));
  QCOMPARE(view.members, 4u);
  QCOMPARE(view.chain.candidates, 0u);
  QCOMPARE(report.seen(moment_of(rounds)).members.size(), std::size_t{4});
  rounds.round();  // they came after it began
  rounds.round(rounds.candidate);
  const auto entry = rounds.entries.take(0, 2, nullptr);
  QVERIFY(entry.has_value());
  QCOMPARE(entry->members, 5u);
  QCOMPARE(rounds.of(*entry, rounds.candidate).standing, std::string("candidate"));
  view = view_of(report, moment_of(rounds));
  QCOMPARE(view.members, 5u);
  QCOMPARE(view.chain.candidates, 1u);
  QCOMPARE(report.seen(moment_of(rounds)).members.size(), std::size_t{5});
}

// A reserve for members would be worth nothing if it cost a signature.
void TestChainReport::a_key_that_only_registered_is_a_stranger() {
  Rounds rounds;
  const auto rank = [&](std::size_t node) {
    const chain::Registry& registry = rounds.chain.registry();
    return rank_of(registry, *registry.find(rounds.id(node)));
  };
  QVERIFY(rank(rounds.founders[3]) == net::PeerRank::Voter);
  QVERIFY(rank(rounds.candidate) == net::PeerRank::Stranger);
  rounds.round();
  QVERIFY(rank(rounds.candidate) == net::PeerRank::Stranger);
  rounds.round(rounds.candidate);
  QVERIFY(rank(rounds.candidate) == net::PeerRank::Known);
}

void TestChainReport::the_step_gives_shares_and_what_was_left_out() {
  Rounds rounds;
  rounds.round();
  outer::AggregateReport step;
  step.ran = {outer::Rule::CenteredClipping, true, false};
  step.clipped_to = 2.0;
  outer::Judged clipped, refused;
  clipped.id = rounds.id(rounds.founders[0]);
  clipped.share = 0.7;
  clipped.clip_factor = 0.25f;
  refused.id = rounds.id(rounds.founders[1]);
  refused.refusal = outer::Refusal::NotFinite;
  step.judged = {clipped, refused};
  const auto entry = rounds.entries.take(0, 1, &step);
  QVERIFY(entry && !entry->fetched);
  QVERIFY(entry->rule.find("clip, ") == 0);
  QCOMPARE(*rounds.of(*entry, rounds.founders[0]).share, 0.7);
  QCOMPARE(rounds.of(*entry, rounds.founders[0]).note, std::string("clipped to 25 %"));
  QVERIFY(rounds.of(*entry, rounds.founders[1]).note.find("left out: ") == 0);
}

void TestChainReport::the_rule_says_what_clipped() {
  Rounds rounds;
  const auto rule_of = [&](std::uint64_t round, const outer::AggregateReport& step) {
    rounds.round();
    return rounds.entries.take(0, round, &step)->rule;
  };
  outer::AggregateReport step;
  step.ran = {outer::Rule::WeightedMean, false, false};
  QCOMPARE(rule_of(1, step), std::string("weighted-mean"));
  step.clipped_to = 2.0;
  QCOMPARE(rule_of(2, step), std::string("clip by earlier rounds, weighted-mean"));
  step.ran = {outer::Rule::TrimmedMean, true, true};
  QCOMPARE(rule_of(3, step), std::string("clip, nearest-neighbour mixing, trimmed-mean"));
}

void TestChainReport::an_entry_is_handed_out_once() {
  Rounds rounds;
  rounds.round();
  QVERIFY(!rounds.entries.take(0, 2, nullptr));
  QVERIFY(rounds.entries.take(0, 1, nullptr));
  QVERIFY(!rounds.entries.take(0, 1, nullptr));
  QCOMPARE(rounds.entries.contributors(), 2u);
}

void TestChainReport::the_chain_is_in_the_view() {
  Rounds rounds;
  ChainReport report({100});
  ChainMoment now = moment_of(rounds);
  for (std::uint8_t i = 0; i < 20; ++i) {
    now.chain.missing.emplace_back();
    now.chain.missing.back().fill(i);
  }
  Hash256 other{};
  other.fill(9);
  now.chain.peers.histories = {{now.chain.genesis, 3}, {other, 2}, {Hash256{}, 1}};
  node::RoundsView view = view_of(report, now);
  QCOMPARE(view.chain.standing, std::string("voter"));
  QCOMPARE(view.chain.candidates, 0u);  // it has done nothing yet
  QCOMPARE(view.chain.block_age, 7.0);
  ChainMoment early = now;
  early.wall = WallTime::min();
  QCOMPARE(view_of(report, early).chain.block_age, 0.0);
  QCOMPARE(view.chain.missing_count, 20u);
  QCOMPARE(view.chain.missing.size(), node::max_missing);
  QCOMPARE(view.chain.others.size(), std::size_t{1});  // neither its own history nor nodes without one
  QCOMPARE(view.chain.others[0].peers, 2u);
  QCOMPARE(report.seen(now).others, std::size_t{2});
  now.self = rounds.id(rounds.candidate);
  now.chain.voter = false;
  now.chain.admission = {1, 2, true, true};
  view = view_of(report, now);
  QCOMPARE(view.chain.standing, std::string("candidate"));
  QCOMPARE(view.chain.contributions, 1u);
  QCOMPARE(view.chain.contributions_needed, 2u);
  QVERIFY(view.chain.needs_voucher);
  QVERIFY(!report.seen(now).voucher_awaited);  // a contribution is missing as well
  now.chain.admission.contributions = 2;
  view_of(report, now);
  now.at += std::chrono::hours(2);
  view_of(report, now);
  QVERIFY(report.seen(now).voucher_awaited == Duration(std::chrono::hours(2)));
}

void TestChainReport::a_person_is_needed_since() {
  Rounds rounds;
  ChainReport report({100});
  ChainMoment now = moment_of(rounds);
  now.chain.outlook = chain::Outlook::NeedsAPerson;
  QCOMPARE(view_of(report, now).chain.person_needed_seconds, 0.0);
  now.at += std::chrono::hours(25);
  QCOMPARE(view_of(report, now).chain.person_needed_seconds, 25 * 3600.0);
  QCOMPARE(view_of(report, now).chain.outlook, std::string("needs_a_person"));
  now.chain.outlook = chain::Outlook::Certifies;  // the others came back
  view_of(report, now);
  now.chain.outlook = chain::Outlook::NeedsAPerson;
  QCOMPARE(view_of(report, now).chain.person_needed_seconds, 0.0);
}

void TestChainReport::other_weights_or_tokenizer_are_told() {
  Rounds rounds;
  ChainReport report({100});
  ChainMoment now = moment_of(rounds);
  QVERIFY(view_of(report, now).trouble.empty());
  now.training.other_identity = true;
  now.training.holds = false;
  QVERIFY(view_of(report, now).trouble.find("other weights or another tokenizer") != std::string::npos);
  ChainMoment begins;
  QVERIFY(view_of(report, begins).trouble.empty());
  begins.chain.refused_anchors = true;
  QVERIFY(view_of(report, begins).trouble.find("other weights or another tokenizer") != std::string::npos);
}

void TestChainReport::members_are_named_by_the_beginning_of_their_ids() {
  Rounds rounds;
  const chain::Registry& registry = rounds.chain.registry();
  const std::string whole = to_hex(rounds.id(rounds.founders[1]));
  const auto found = members_named(registry, {whole.substr(0, 12), whole});
  QVERIFY(found.ok());
  QCOMPARE(*found, std::vector<net::NodeId>{rounds.id(rounds.founders[1])});
  for (const std::string& wrong : {std::string(), whole.substr(0, 7), whole + "0", std::string("not a hexid"),
                                   std::string(1 << 20, 'a')})
    QVERIFY(members_named(registry, {wrong}).error().code == ErrorCode::InvalidArgument);
  std::string unknown = whole;
  unknown[0] = unknown[0] == '0' ? '1' : '0';
  QVERIFY(members_named(registry, {unknown}).error().code == ErrorCode::NotFound);
}

void TestChainReport::a_revoked_node_is_told_what_to_do() {
  Rounds rounds;
  ChainMoment now = moment_of(rounds);
  ChainReport report({1000});
  QVERIFY(view_of(report, now).trouble.empty());
  now.chain.revoked = true;
  now.chain.member = now.chain.voter = now.chain.active = false;
  now.self = {};
  const node::RoundsView view = view_of(report, now);
  QCOMPARE(view.chain.standing, std::string("revoked"));
  QVERIFY2(view.trouble.find("wallet has revoked its key") != std::string::npos &&
               view.trouble.find("new data directory") != std::string::npos,
           view.trouble.c_str());
}

void TestChainReport::a_wallet_asks_what_to_sign() {
  Rounds rounds;
  const std::size_t stolen = rounds.founders[1];
  const std::string id = to_hex(rounds.id(stolen));
  node::RevocationRequest request{id.substr(0, 12), to_hex(rounds.chain.wallet_key(stolen).public_key()), {}};
  const auto ask = [&] { return draft_revocation(rounds.chain.rules(), tip_of(rounds.chain), request); };
  auto reply = ask();
  QVERIFY2(reply.ok(), reply.ok() ? "" : reply.error().describe().c_str());
  QCOMPARE(reply->node, id);
  QCOMPARE(reply->network, to_hex(rounds.chain.rules().network));
  QCOMPARE(reply->revoked_at, std::uint64_t{0});
  auto statement = chain::decode_statement(reply->statement);
  QVERIFY(statement.ok());
  chain::sign_revocation(*statement, rounds.chain.wallet_key(stolen), rounds.chain.rules().network);
  QVERIFY(rounds.chain.append(ChainFixture::body_of({*statement})).ok());
  reply = ask();
  QVERIFY(reply.ok() && reply->statement.empty());
  QCOMPARE(reply->node, id);
  QCOMPARE(reply->revoked_at, rounds.chain.registry().height());

  request.node = to_hex(rounds.id(rounds.founders[2]));
  QCOMPARE(ask().error().message, std::string("the node works for another wallet"));
  request.node = std::string(64, '0');
  QCOMPARE(ask().error().code, ErrorCode::NotFound);
  request.node = "1a";
  QCOMPARE(ask().error().code, ErrorCode::InvalidArgument);
  request.wallet = "1a";
  QVERIFY(!ask().ok());
}

void TestChainReport::a_part_says_who_checks_it() {
  // Nodes 0 and 1 hold the first row, and all of them the second: nobody else can check that one.
  ChainFixture chain(small_rules(chain::VotersMode::Open, 2));
  const auto all = chain.add_nodes(4);
  for (const std::size_t node : all)
    chain.set_rows(node, node < 2 ? chain::RowSet::of({0, 1}) : chain::RowSet::of({1}));
  QVERIFY(chain.begin(all).ok());
  ChainMoment now;
  now.registry = chain.registry_ptr();
  now.training.checks = {20, 1, 2};
  ChainReport report({1000, 1000});
  node::RoundsView view;
  view.part.emplace();
  view.part->count = 2;
  report.fill(view, now);
  QVERIFY(view.part->checkers.empty());  // no round yet
  QVERIFY(view.part->found_right == 20 && view.part->found_wrong == 1 && view.part->withheld == 2);
  chain::BlockBody body;
  body.close = chain.close({{0}, {1}, {2}, {3}});
  QVERIFY(chain.append(body).ok());
  now.registry = chain.registry_ptr();
  report.fill(view, now);
  QVERIFY((view.part->checkers == std::vector<std::uint32_t>{2, 0}));
}

NS_TEST(TestChainReport)
#include "test_chain_report.moc"
