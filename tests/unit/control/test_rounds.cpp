// Rounds, for people and their decisions about them, over real loopback gRPC.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestControlRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    fixture_ = std::make_unique<ControlFixture>();
    QVERIFY(fixture_->start().ok());
    remote_ = fixture_->connect();
    QVERIFY(remote_ != nullptr);
  }
  void cleanup() {
    remote_.reset();
    fixture_.reset();
  }
  void the_report_arrives_as_it_was_told();
  void the_snapshot_says_where_the_chain_stands();
  void the_part_of_the_model_arrives();
  void the_memory_of_the_network_arrives();
  void decisions_arrive_whole();
  void a_question_about_a_change_arrives_whole();
  void a_change_that_is_not_known_is_refused();

 private:
  // The snapshot after this change, as another program sees it.
  template <class Change>
  std::shared_ptr<const node::Snapshot> seen_after(const Change& change) {
    const std::uint64_t step = ++step_;
    fixture_->node.publish([&change, step](node::Snapshot& next) {
      change(next);
      node::bound(next);
      next.training.step = step;
    });
    const bool arrived = until([this, step] { return remote_->snapshot()->training.step == step; });
    return arrived ? remote_->snapshot() : nullptr;
  }

  std::unique_ptr<ControlFixture> fixture_;
  std::unique_ptr<control::RemoteNode> remote_;
  std::uint64_t step_ = 0;
};

void TestControlRounds::the_report_arrives_as_it_was_told() {
  testing::FakeNode& node = fixture_->node;
  node.rounds.taking_part = true;
  node::RoundEntry round;
  round.round = 7;
  round.seconds = 12.5;
  round.step = 140;
  round.too_few_to_vote = true;
  round.members = 3;
  round.contributors = 2;
  round.who = {{std::string(64, 'a'), true, true, 20, 400, 0.5, ""},
               {std::string(64, 'b'), false, false, 0, 0, std::nullopt, "late"}};
  node.rounds.rounds = {round};
  node::TrainingNodeEntry one;
  one.id = std::string(64, 'a');
  one.agrees = false;
  one.loss = 3.5;
  one.shard = 0;
  node.rounds.nodes = {one, {}};
  node.rounds.losses = {{6, 3.75}, {7, 3.5}};
  node.rounds.refused = {{"from another anchor", 3}};
  const auto told = answer<node::RoundsReport>([&](auto reply) { return remote_->query_rounds(reply); });
  QVERIFY2(told.ok(), told.ok() ? "" : told.error().describe().c_str());
  QVERIFY(told->taking_part);
  QCOMPARE(told->rounds.at(0).who.at(1).note, std::string("late"));
  QCOMPARE(*told->rounds.at(0).who.at(0).share, 0.5);
  QCOMPARE(told->rounds.at(0).step, std::uint64_t{140});
  QVERIFY(!told->rounds.at(0).who.at(1).share && told->rounds.at(0).too_few_to_vote);
  QVERIFY(!*told->nodes.at(0).agrees && *told->nodes.at(0).shard == 0);
  QVERIFY(!told->nodes.at(1).agrees && !told->nodes.at(1).loss && !told->nodes.at(1).shard);
  QCOMPARE(told->losses.at(1).loss, 3.5);
  QCOMPARE(told->refused.at(0).count, std::uint64_t{3});
  // The longest answer is one.
  round.who.assign(node::max_round_members_shown,
                   {std::string(64, 'c'), false, true, 500, 1, 1, std::string(80, 'n')});
  node.rounds.rounds.assign(node::max_round_entries + 5, round);
  node.rounds.nodes.assign(node::max_training_nodes, one);
  const auto most = answer<node::RoundsReport>([&](auto reply) { return remote_->query_rounds(reply); });
  QVERIFY2(most.ok(), most.ok() ? "" : most.error().describe().c_str());
  QCOMPARE(most->rounds.size(), node::max_round_entries);
}

void TestControlRounds::the_snapshot_says_where_the_chain_stands() {
  const auto view = seen_after([](node::Snapshot& next) {
    next.rounds.taking_part = true;
    next.rounds.global.reports = 4;
    next.rounds.global.hash_agreement = 0.75;
    next.rounds.global.loss_trend = "improving";
    node::ChainView& chain = next.rounds.chain;
    chain.genesis = std::string(64, 'g');
    chain.height = 77;
    chain.block_age = 2.5;
    chain.stalled = true;
    chain.missing.assign(node::max_missing + 3, std::string(64, 'm'));
    chain.missing_count = node::max_missing + 3;
    chain.standing = "candidate";
    chain.contributions_needed = 8;
    chain.needs_voucher = true;
    chain.outlook = "needs_a_person";
    chain.others = {{std::string(64, 'o'), 2}};
    next.peers = {true, 5, 1000.0, std::nullopt};
  });
  QVERIFY(view != nullptr);
  QCOMPARE(*view->rounds.global.hash_agreement, 0.75);
  QVERIFY(!view->rounds.global.loss && !view->rounds.seconds_left);
  QCOMPARE(view->rounds.global.loss_trend, std::string("improving"));
  const node::ChainView& chain = view->rounds.chain;
  QCOMPARE(chain.genesis, std::string(64, 'g'));
  QCOMPARE(chain.height, std::uint64_t{77});
  QCOMPARE(chain.block_age, 2.5);
  QVERIFY(chain.stalled && !chain.block_due && chain.needs_voucher);
  QCOMPARE(chain.missing.size(), node::max_missing);
  QCOMPARE(chain.missing_count, static_cast<std::uint32_t>(node::max_missing + 3));
  QCOMPARE(chain.standing, std::string("candidate"));
  QCOMPARE(chain.contributions_needed, 8u);
  QCOMPARE(chain.outlook, std::string("needs_a_person"));
  QCOMPARE(chain.others.at(0).peers, 2u);
  QCOMPARE(view->peers.connected, 5u);
  QVERIFY(view->peers.bytes_in_per_second && !view->peers.bytes_out_per_second);
}

void TestControlRounds::the_part_of_the_model_arrives() {
  const auto view = seen_after([](node::Snapshot& next) {
    node::PartView& part = next.rounds.part.emplace();
    part.number = 2;
    part.path = {{std::string(64, '1'), 12.5, 30.25}, {std::string(64, '2'), std::nullopt, std::nullopt}};
    part.path.resize(node::max_path + 3);
    part.found_right = 20;
    part.found_wrong = 1;
    part.withheld = 2;
    part.checkers = {3, 0};
    part.speeds = {45, 100};
    part.follows_plan = true;
    part.moves_to = 1;
    part.reason = node::PartReason::OneWallet;
  });
  QVERIFY(view != nullptr && view->rounds.part);
  const std::vector<node::HopView>& path = view->rounds.part->path;
  QCOMPARE(path.size(), node::max_path);
  const node::PartView& part = *view->rounds.part;
  QVERIFY(part.found_right == 20 && part.found_wrong == 1 && part.withheld == 2);
  QVERIFY((part.checkers == std::vector<std::uint32_t>{3, 0}));
  QVERIFY((part.speeds == std::vector<std::uint32_t>{45, 100}));
  QVERIFY(part.follows_plan && part.moves_to == 1 && part.reason == node::PartReason::OneWallet);
  QCOMPARE(path[0].node, std::string(64, '1'));
  QCOMPARE(*path[0].computing_ms, 12.5);
  QCOMPARE(*path[0].between_ms, 30.25);
  QCOMPARE(path[1].node, std::string(64, '2'));
  QVERIFY(!path[1].computing_ms && !path[1].between_ms);
}

void TestControlRounds::the_memory_of_the_network_arrives() {
  const auto view = seen_after([](node::Snapshot& next) {
    node::NetworkMemoryView& memory = next.rounds.memory.emplace();
    memory.members = 6;
    memory.known = 5;
    memory.offered_bytes = 48'000'000'000;
    memory.own_bytes = 3'500'000'000;
    memory.tier = "Micro";
    memory.next_tier = "Small";
    memory.next_tier_bytes = 100'000'000'000;
    memory.needs_room = 5;
    memory.present = {6, 512, 40'000'000, 1'200'000'000, 4};
    memory.next = {8, 640, 61'000'000, 2'500'000'000, 3, 30'000'000'000, 6, 29'000'000'000, 58, 75};
    memory.can_change = true;
    memory.smaller = node::NetworkMemoryView::Model{6, 256, 9'000'000, 900'000'000, 5};
    memory.asked = node::SizeChange::Down;
    memory.results = 2;
    memory.results_needed = 4;
    memory.changing = true;
  });
  QVERIFY(view != nullptr && view->rounds.memory);
  const node::NetworkMemoryView& memory = *view->rounds.memory;
  QVERIFY(memory.members == 6 && memory.known == 5 && memory.needs_room == 5);
  QCOMPARE(memory.offered_bytes, std::uint64_t{48'000'000'000});
  QCOMPARE(memory.own_bytes, std::uint64_t{3'500'000'000});
  QVERIFY(memory.tier == "Micro" && memory.next_tier == "Small");
  QCOMPARE(memory.next_tier_bytes, std::uint64_t{100'000'000'000});
  QVERIFY(memory.present.layers == 6 && memory.present.hidden == 512 && memory.present.with_room == 4);
  QVERIFY(!memory.possible && memory.next);
  QCOMPARE(memory.next->parameters, std::uint64_t{61'000'000});
  QCOMPARE(memory.next->member_bytes, std::uint64_t{2'500'000'000});
  QVERIFY(memory.next->with_room == 3 && memory.next->members == 6);
  QCOMPARE(memory.next->network_bytes, std::uint64_t{30'000'000'000});
  QCOMPARE(memory.next->offered_bytes, std::uint64_t{29'000'000'000});
  QVERIFY(memory.next->room_percent == 58 && memory.next->needs_percent == 75);
  QVERIFY(memory.can_change && memory.changing && memory.asked == node::SizeChange::Down);
  QVERIFY(memory.results == 2 && memory.results_needed == 4);
  QVERIFY(memory.smaller && memory.smaller->hidden == 256 && memory.smaller->with_room == 5);
  const auto later = seen_after([](node::Snapshot& next) {
    next.rounds.memory.emplace().possible = node::NetworkMemoryView::Model{10, 768, 90'000'000, 4, 5};
  });
  QVERIFY(later != nullptr && later->rounds.memory && !later->rounds.memory->next);
  QVERIFY(later->rounds.memory->possible && later->rounds.memory->possible->layers == 10);
  QVERIFY(!later->rounds.memory->can_change && later->rounds.memory->asked == node::SizeChange::None);
}

void TestControlRounds::decisions_arrive_whole() {
  testing::FakeNode& node = fixture_->node;
  const auto decided = answer<node::ContinuationReply>([&](auto reply) {
    return remote_->decisions().continue_network({{std::string(64, 'm')}, {}}, reply);
  });
  QVERIFY2(decided.ok(), decided.ok() ? "" : decided.error().describe().c_str());
  QCOMPARE(decided->without, std::vector<std::string>{std::string(64, 'm')});
  QCOMPARE(node.decided.continuations.at(0).without, decided->without);
  // So does what a wallet has signed, and what it is to sign.
  node.decided.revoked = {std::string(64, 'n'), std::string(64, 'e'), {0, 200, 7}, 41, 42};
  const node::RevocationRequest asked{"1a2b3c4d", std::string(64, 'w'), {0, 255, 9}};
  const auto revoked = answer<node::RevocationReply>(
      [&](auto reply) { return remote_->decisions().revoke_node(asked, reply); });
  QVERIFY2(revoked.ok(), revoked.ok() ? "" : revoked.error().describe().c_str());
  QCOMPARE(revoked->node, node.decided.revoked.node);
  QCOMPARE(revoked->network, node.decided.revoked.network);
  QCOMPARE(revoked->statement, node.decided.revoked.statement);
  QCOMPARE(revoked->height, std::uint64_t{41});
  QCOMPARE(revoked->revoked_at, std::uint64_t{42});
  QCOMPARE(node.decided.revocations.at(0).node, asked.node);
  QCOMPARE(node.decided.revocations.at(0).wallet, asked.wallet);
  QCOMPARE(node.decided.revocations.at(0).statement, asked.statement);
}

void TestControlRounds::a_question_about_a_change_arrives_whole() {
  testing::FakeDecisions& decided = fixture_->node.decided;
  node::WhatIf& told = decided.what_if;
  told.counts = true;
  told.now.memory.offered_bytes = 12'000'000'000;
  told.now.memory.tier = "Nano";
  told.now.lacking_bytes = 5'000'000'000;
  told.then.memory.offered_bytes = 18'500'000'000;
  told.then.memory.next = node::NetworkMemoryView::Model{8, 640, 61'000'000, 2'500'000'000, 3};
  told.then.asks = node::SizeChange::Up;
  told.then.lacking_members = 2;
  const auto ask = [this](const node::WhatIfQuery& query) {
    return answer<node::WhatIf>([&](auto reply) { return remote_->decisions().query_what_if(query, reply); });
  };
  auto heard = ask({8'500'000'000});
  QVERIFY2(heard.ok(), heard.ok() ? "" : heard.error().describe().c_str());
  QVERIFY(heard->counts && heard->now.memory.offered_bytes == 12'000'000'000);
  QVERIFY(heard->now.memory.tier == "Nano" && heard->now.asks == node::SizeChange::None);
  QVERIFY(heard->now.lacking_bytes == 5'000'000'000 && heard->now.lacking_members == 0);
  QVERIFY(heard->then.memory.next && heard->then.memory.next->hidden == 640);
  QVERIFY(heard->then.asks == node::SizeChange::Up && heard->then.lacking_members == 2);
  QVERIFY(!heard->part && !heard->votes);
  told.part = node::PartWithout{2, 3, 4, 1, 3, true};
  told.votes = node::VotesWithout{36, 24, true, 1, 2};
  heard = ask({});
  QVERIFY(heard.ok() && heard->part && heard->votes);
  QVERIFY(heard->part->number == 2 && heard->part->count == 3 && heard->part->nodes == 4);
  QVERIFY(heard->part->wallets == 1 && heard->part->moves_from == 3 && heard->part->waits);
  QVERIFY(heard->votes->all_units == 36 && heard->votes->other_units == 24 && heard->votes->nobody);
  QVERIFY(heard->votes->lacking_at_once == 1 && heard->votes->lacking_after_wait == 2);
  QCOMPARE(decided.asked.size(), std::size_t{2});
  QCOMPARE(*decided.asked[0].memory_bytes, std::uint64_t{8'500'000'000});
  QVERIFY(!decided.asked[1].memory_bytes);
  // So does the reason why there is no answer.
  decided.refusal = make_error(ErrorCode::Unavailable, "this node is no member yet");
  heard = ask({});
  QVERIFY(!heard.ok() && heard.error().code == ErrorCode::Unavailable);
  QCOMPARE(heard.error().message, decided.refusal->message);
}

// Of a newer program.
void TestControlRounds::a_change_that_is_not_known_is_refused() {
  const auto stub = fixture_->raw();
  const auto call = [&](const wire::WhatIfQuery& query) {
    grpc::ClientContext context;
    fixture_->sign(&context);
    wire::WhatIf reply;
    return stub->QueryWhatIf(&context, query, &reply).error_code();
  };
  wire::WhatIfQuery query;
  QCOMPARE(call(query), grpc::StatusCode::INVALID_ARGUMENT);
  query.set_leave(false);
  QCOMPARE(call(query), grpc::StatusCode::INVALID_ARGUMENT);
  QVERIFY(fixture_->node.decided.asked.empty());
  // Zero reaches the node, which refuses it.
  query.set_memory(0);
  QCOMPARE(call(query), grpc::StatusCode::OK);
  QCOMPARE(*fixture_->node.decided.asked.at(0).memory_bytes, std::uint64_t{0});
}

NS_TEST(TestControlRounds)
#include "test_rounds.moc"
