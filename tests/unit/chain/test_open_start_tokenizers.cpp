// Nodes that begin a network with different tokenizers end in one genesis, which has that of the lowest id.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/open_start_bus.h"

using namespace neuroshard;                // NOLINT
using namespace neuroshard::chain;         // NOLINT
using namespace neuroshard::chain::small;  // NOLINT

class TestOpenStartTokenizers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_lowest_ids_tokenizer_is_the_networks();
  void a_node_with_another_tokenizer_does_not_hold_up_the_start();
  void nobody_signs_a_genesis_with_another_tokenizer();
};

// Each node comes with a tokenizer of its own: all of them end in one genesis, with that of the lowest id.
void TestOpenStartTokenizers::the_lowest_ids_tokenizer_is_the_networks() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string label = "seed " + std::to_string(seed);
    StartBus::Options options;
    options.nodes = 3;
    options.seed = seed;
    options.last_join = seconds(5);
    options.take_over = seconds(5 + 2 * static_cast<int>(seed));
    StartBus bus(options);
    bus.run(minutes(4));
    QVERIFY2(bus.completed().size() == 1, label.c_str());
    const auto geneses = bus.geneses();
    QCOMPARE(geneses.size(), std::size_t{3});
    const GenesisSection& genesis = *geneses.front().block->body.genesis;
    QCOMPARE(genesis.founders.size(), std::size_t{3});
    std::uint16_t lowest = 0;
    for (const std::uint16_t other : {1, 2})
      if (party_of(other).id < party_of(lowest).id) lowest = other;
    QVERIFY2(genesis.tokenizer == StartBus::tokenizer_of(lowest), label.c_str());
  }
}

// A node whose tokenizer nobody can have holds nothing up for long.
void TestOpenStartTokenizers::a_node_with_another_tokenizer_does_not_hold_up_the_start() {
  const std::vector<std::uint16_t> order = by_id(2);
  Node high(order[1], {}, {}, StartBus::tokenizer_of(order[1]));
  const Party low = party_of(order[0]);
  std::optional<CertifiedBlock> genesis;
  Duration wanted{}, begun{};
  for (Duration now{}; now < minutes(10) && !genesis; now += seconds(1)) {
    const OpenStart::Output output = high.tick(now);
    if (output.genesis) {
      genesis = output.genesis;
      begun = now;
    }
    high.start.take(net::Caller{low.id, {}}, GenesisHello{founder_of(low), StartBus::tokenizer_of(order[0])},
                    at(now));
    if (high.start.wanted_tokenizer()) {
      QCOMPARE(*high.start.wanted_tokenizer(), StartBus::tokenizer_of(order[0]));
      wanted = now;
    }
  }
  QVERIFY(wanted > seconds(7));
  QVERIFY(genesis.has_value());
  QVERIFY(begun > minutes(2) && begun < minutes(5));
  QCOMPARE(genesis->block->body.genesis->founders.size(), std::size_t{1});
}

// The lowest id waits for the others to take over its tokenizer, and never signs another one's genesis.
void TestOpenStartTokenizers::nobody_signs_a_genesis_with_another_tokenizer() {
  const std::vector<std::uint16_t> order = by_id(2);
  Node low(order[0], {}, {}, StartBus::tokenizer_of(order[0]));
  const Party high = party_of(order[1]);
  low.tick({});
  QCOMPARE(low.start.take(net::Caller{high.id, {}},
                          GenesisHello{founder_of(high), StartBus::tokenizer_of(order[1])}, at(seconds(1))),
           Verdict::Taken);
  for (int second = 1; second < 45; ++second) {
    const OpenStart::Output output = low.tick(seconds(second));
    QVERIFY(!find_item<GenesisProposal>(output));
  }
  QVERIFY(!low.start.wanted_tokenizer());
  OpenStart::Output output;
  QCOMPARE(low.propose(high, genesis_of({0, 1}), seconds(46), &output), Verdict::Inadmissible);
  QVERIFY(!low.start.refused_anchors());
  // It says hello again, with the tokenizer of the lowest id.
  QCOMPARE(low.start.take(net::Caller{high.id, {}},
                          GenesisHello{founder_of(high), StartBus::tokenizer_of(order[0])}, at(seconds(46))),
           Verdict::Taken);
  QVERIFY(find_item<GenesisProposal>(low.tick(seconds(47))));
}

NS_TEST(TestOpenStartTokenizers)
#include "test_open_start_tokenizers.moc"
