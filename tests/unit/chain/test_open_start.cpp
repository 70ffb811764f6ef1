// Nodes without a history make one genesis together, over messages that are late, lost, or from Byzantine nodes.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/open_start_bus.h"

using namespace neuroshard;                // NOLINT
using namespace neuroshard::chain;         // NOLINT
using namespace neuroshard::chain::small;  // NOLINT

class TestOpenStart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void all_begin_with_one_genesis_data();
  void all_begin_with_one_genesis();
  void late_joiners_and_losses_end_in_one_history();
  void a_dead_founder_delays_it_only();
  void a_silent_lowest_node_is_replaced();
  void a_hello_to_some_only_holds_nothing_up();
  void a_node_alone_begins_after_three_seconds();
  void it_signs_one_at_a_time();
  void a_stranger_in_the_list_is_not_signed();
  void a_node_that_was_left_out_is_missed();
  void only_named_founders_begin();
  void a_genesis_names_the_wallet_of_the_invitation();
};

void TestOpenStart::all_begin_with_one_genesis_data() {
  QTest::addColumn<int>("nodes");
  for (int nodes = 2; nodes <= 8; ++nodes) QTest::newRow(qPrintable(QString::number(nodes))) << nodes;
}

void TestOpenStart::all_begin_with_one_genesis() {
  QFETCH(int, nodes);
  StartBus bus({static_cast<std::size_t>(nodes), 0, milliseconds(300), seconds(5), 7});
  bus.run(seconds(30));
  const std::vector<CertifiedBlock> geneses = bus.geneses();
  QCOMPARE(geneses.size(), static_cast<std::size_t>(nodes));
  QCOMPARE(bus.completed().size(), std::size_t{1});
  for (const CertifiedBlock& genesis : geneses) {
    QCOMPARE(genesis.block->hash, *bus.completed().begin());
    QCOMPARE(founders_of(genesis), static_cast<std::size_t>(nodes));
  }
  QVERIFY(bus.first_at() >= seconds(15));
}

// At most two begin, and then every node knows which one goes on.
void TestOpenStart::late_joiners_and_losses_end_in_one_history() {
  int single = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const std::size_t nodes : {2u, 3u, 5u, 8u}) {
      StartBus bus({nodes, 0.3, seconds(1), seconds(40), seed});
      bus.run(minutes(5));
      QCOMPARE(bus.geneses().size(), nodes);
      QVERIFY(bus.completed().size() <= 2);
      ++runs;
      if (bus.completed().size() == 1) ++single;
      if (bus.completed().size() == 2) {
        const Hash256 a = *bus.completed().begin(), b = *bus.completed().rbegin();
        QVERIFY(prefers_other({a, 0, 1}, {b, 0, 1}) != prefers_other({b, 0, 1}, {a, 0, 1}));
      }
    }
  }
  QVERIFY2(single * 4 >= runs * 3, qPrintable(QString("%1 of %2").arg(single).arg(runs)));
}

// It said hello and is in the list; its signature never comes.
void TestOpenStart::a_dead_founder_delays_it_only() {
  for (std::size_t dead = 0; dead < 4; ++dead) {
    StartBus bus({4, 0, milliseconds(100), {}, 3});
    bus.dies(dead, seconds(10));
    bus.run(minutes(2));
    const std::vector<CertifiedBlock> geneses = bus.geneses();
    QCOMPARE(geneses.size(), std::size_t{3});
    QCOMPARE(bus.completed().size(), std::size_t{1});
    QCOMPARE(founders_of(geneses[0]), std::size_t{3});
    QVERIFY(bus.first_at() >= seconds(45));
  }
}

// It says hello again and again, and proposes nothing.
void TestOpenStart::a_silent_lowest_node_is_replaced() {
  const std::uint16_t lowest = by_id(4)[0];
  StartBus bus({4, 0, milliseconds(100), {}, 5});
  bus.stops = [lowest](std::size_t from, std::size_t, const ChainItem& item) {
    return from == lowest && std::holds_alternative<GenesisProposal>(item);
  };
  // It signs its own proposal, which nobody sees, and no other for 30 s.
  bus.run(minutes(3));
  QCOMPARE(bus.geneses().size(), std::size_t{4});
  QCOMPARE(bus.completed().size(), std::size_t{1});

  Node second(by_id(4)[1]);
  second.tick({});
  QCOMPARE(second.hello(party_of(lowest), seconds(1)), Verdict::Taken);
  QVERIFY(!find_item<GenesisProposal>(second.tick(seconds(25) - milliseconds(1))));
  QVERIFY(find_item<GenesisProposal>(second.tick(seconds(25))));
}

void TestOpenStart::a_hello_to_some_only_holds_nothing_up() {
  const std::vector<std::uint16_t> order = by_id(4);
  StartBus bus({4, 0, milliseconds(100), {}, 11});
  // The highest talks to the second only, from the start on and for ever.
  bus.stops = [&order](std::size_t from, std::size_t to, const ChainItem&) {
    return from == order[3] && to != order[1];
  };
  bus.run(minutes(6));
  QVERIFY(!bus.completed().empty());
  for (const CertifiedBlock& genesis : bus.geneses()) QCOMPARE(founders_of(genesis), std::size_t{3});
  QCOMPARE(bus.completed().size(), std::size_t{1});
}

void TestOpenStart::a_node_alone_begins_after_three_seconds() {
  Node node(1);
  QVERIFY(!node.tick({}, true).genesis);
  QVERIFY(!node.tick(milliseconds(2999), true).genesis);
  const auto output = node.tick(seconds(3), true);
  QVERIFY(output.genesis.has_value());
  QVERIFY(History::begin({node.rules, node.checks, nullptr}, *output.genesis).ok());
  QVERIFY(!node.tick(minutes(1), true).genesis);  // once

  Node waits(1);  // there are nodes that could answer
  waits.tick({});
  QVERIFY(!waits.tick(milliseconds(14'999)).genesis);
  QVERIFY(waits.tick(seconds(15)).genesis.has_value());
}

void TestOpenStart::it_signs_one_at_a_time() {
  const std::vector<std::uint16_t> order = by_id(3);
  Node node(order[2]);
  node.tick({});
  for (const std::uint16_t other : {order[0], order[1]})
    QCOMPARE(node.hello(party_of(other), seconds(1)), Verdict::Taken);
  const BlockPtr first = genesis_of({0, 1, 2}), second = genesis_of({0, 1, 2}, seconds(1));
  OpenStart::Output output;
  QCOMPARE(node.propose(party_of(order[0]), first, seconds(16), &output), Verdict::Taken);
  const auto* signature = find_item<GenesisSignature>(output);
  QVERIFY(signature && signature->block == first->hash);
  output = {};
  QCOMPARE(node.propose(party_of(order[1]), second, seconds(17), &output), Verdict::Busy);
  QVERIFY(output.to_all.empty() && !output.to_one);
  // Once more the same: its signature was lost, perhaps.
  QCOMPARE(node.propose(party_of(order[0]), first, seconds(18), &output), Verdict::Known);
  QCOMPARE(output.to_one->first, party_of(order[0]).id);
  output = {};
  QCOMPARE(node.propose(party_of(order[1]), second, seconds(46) - milliseconds(1), &output), Verdict::Busy);
  // Released: it has forgotten whom it heard, and says hello again.
  QVERIFY(find_item<GenesisHello>(node.tick(seconds(46))));
  QCOMPARE(node.start.heard_nodes().size(), std::size_t{0});
  for (const std::uint16_t other : {order[0], order[1]})
    QCOMPARE(node.hello(party_of(other), seconds(47)), Verdict::Taken);
  QCOMPARE(node.propose(party_of(order[1]), second, seconds(48), &output), Verdict::Taken);
  QCOMPARE(find_item<GenesisSignature>(output)->block, second->hash);
}

// Nobody signs for a network with nodes that it knows nothing of.
void TestOpenStart::a_stranger_in_the_list_is_not_signed() {
  const std::vector<std::uint16_t> order = by_id(3);
  Node node(order[1]);
  node.tick({});
  QCOMPARE(node.hello(party_of(order[0]), seconds(1)), Verdict::Taken);
  const BlockPtr block = genesis_of({0, 1, 2});
  OpenStart::Output output;
  QCOMPARE(node.propose(party_of(order[0]), block, seconds(16), &output), Verdict::Busy);
  QVERIFY(output.to_all.empty());
  // Heard of with another statement than the listed one.
  Party other = party_of(order[2]);
  Register registration = small::registration_of(other);
  registration.beacon.length = 77;
  const Statement changed = small::statement_of(other, registration, {});
  QCOMPARE(node.start.take(net::Caller{other.id, {}}, GenesisHello{changed}, at(seconds(17))),
           Verdict::Taken);
  QCOMPARE(node.propose(party_of(order[0]), block, seconds(18), &output), Verdict::Busy);
  QCOMPARE(node.hello(other, seconds(19)), Verdict::Taken);
  QCOMPARE(node.propose(party_of(order[0]), block, seconds(20), &output), Verdict::Taken);
}

void TestOpenStart::a_node_that_was_left_out_is_missed() {
  const std::vector<std::uint16_t> order = by_id(3);
  const BlockPtr without = genesis_of({order[0], order[1]});
  Node node(order[1]);
  const auto hear_both = [&](Duration now) {
    QCOMPARE(node.hello(party_of(order[0]), now), Verdict::Taken);
    QCOMPARE(node.hello(party_of(order[2]), now), Verdict::Taken);
  };
  OpenStart::Output output;
  Duration now{};
  for (int attempt = 0; attempt < 3; ++attempt) {
    node.tick(now);
    hear_both(now);
    // It takes part, with a genesis that this node has not signed.
    QCOMPARE(node.start.take(party_of(order[2]).id, {Hash256{4}, party_of(order[2]).node.public_key(), {}},
                             &output),
             Verdict::Busy);
    QCOMPARE(node.propose(party_of(order[0]), without, now + seconds(8), &output), Verdict::Inadmissible);
    QVERIFY(output.to_all.empty());
    // Nothing comes of it: its own proposal in its turn, which nobody signs, is released too.
    now += seconds(15 + 10 + 30);
    node.tick(now - seconds(30));
    node.tick(now);
    QCOMPARE(node.start.heard_nodes().size(), std::size_t{0});
  }
  hear_both(now);
  QCOMPARE(node.propose(party_of(order[0]), without, now + seconds(8), &output), Verdict::Taken);

  // One that it heard only now may well be missing.
  Node late(order[1]);
  late.tick({});
  QCOMPARE(late.hello(party_of(order[0]), seconds(1)), Verdict::Taken);
  QCOMPARE(late.hello(party_of(order[2]), seconds(14)), Verdict::Taken);
  QCOMPARE(late.propose(party_of(order[0]), without, seconds(16), &output), Verdict::Taken);
}

void TestOpenStart::only_named_founders_begin() {
  const std::vector<crypto::PublicKey> founders{party_of(0).wallet.public_key(),
                                                party_of(1).wallet.public_key()};
  Node founder(0, founders), other(2, founders);
  QVERIFY(other.tick({}, true).to_all.empty());
  QVERIFY(!other.tick(minutes(5), true).genesis);
  QVERIFY(find_item<GenesisHello>(founder.tick({}, true)));
  QCOMPARE(founder.hello(party_of(2), seconds(1)), Verdict::Inadmissible);
  QCOMPARE(founder.hello(party_of(1), seconds(1)), Verdict::Taken);
  OpenStart::Output output;
  QCOMPARE(founder.propose(party_of(1), genesis_of({0, 1, 2}), seconds(16), &output), Verdict::Busy);
  QCOMPARE(founder.propose(party_of(1), genesis_of({0, 1}), seconds(16), &output), Verdict::Taken);
}

// An invitation from before the first block names the wallet of the inviting node.
void TestOpenStart::a_genesis_names_the_wallet_of_the_invitation() {
  Node alone(2, {}, party_of(0).wallet.public_key());
  QVERIFY(find_item<GenesisHello>(alone.tick({}, true)));
  for (int second = 0; second <= 300; second += 5) QVERIFY(!alone.tick(seconds(second), true).genesis);

  Node invited(2, {}, party_of(0).wallet.public_key()), control(2);
  OpenStart::Output output;
  for (Node* node : {&invited, &control}) {
    node->tick({});
    QCOMPARE(node->hello(party_of(1), seconds(1)), Verdict::Taken);
  }
  const BlockPtr without = genesis_of({1, 2});
  QCOMPARE(invited.propose(party_of(1), without, seconds(16), &output), Verdict::Inadmissible);
  QCOMPARE(control.propose(party_of(1), without, seconds(16), &output), Verdict::Taken);
  QCOMPARE(invited.hello(party_of(0), seconds(16)), Verdict::Taken);
  QCOMPARE(invited.propose(party_of(1), genesis_of({0, 1, 2}), seconds(17), &output), Verdict::Taken);
}

NS_TEST(TestOpenStart)
#include "test_open_start.moc"
