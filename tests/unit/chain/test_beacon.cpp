// The beacon: every round of a hash chain verifies against its tip, over gaps and at both ends, and nothing else
// does.
#include <QtTest>

#include "core/chain/beacon.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

constexpr std::uint64_t none = 0;
bool alone(const BeaconCommitment& commitment, std::uint64_t round, const Hash256& value) {
  return reveal_holds(commitment, round, value, {}, none);
}

}  // namespace

class TestChainBeacon : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_round_verifies();
  void nothing_before_the_first_and_after_the_last_round();
  void a_value_holds_in_its_round_only();
  void only_the_gap_to_a_known_value_is_hashed();
  void a_known_value_of_another_chain_is_ignored();
  void the_longest_chain_verifies_at_both_ends();
  void rounds_at_the_end_of_the_numbers();
  void the_next_beacon_depends_on_all_of_its_inputs();
  void lots_differ_by_purpose_beacon_and_node();
};

void TestChainBeacon::every_round_verifies() {
  for (const std::uint32_t length : {1u, 2u, 255u, 256u, 257u, 600u}) {
    const BeaconChain chain(samples::filled(1), 10, length);
    QCOMPARE(chain.commitment().length, length);
    for (std::uint64_t round = 10; round<10 + length; round += length> 300 ? 37 : 1) {
      const auto value = chain.reveal(round);
      QVERIFY(value.ok());
      QVERIFY(alone(chain.commitment(), round, *value));
      QVERIFY2(*value != chain.commitment().tip, "the tip is public before any round");
    }
    QVERIFY2(*chain.reveal(10 + length - 1) == samples::filled(1), "the last value is the seed");
  }
}

void TestChainBeacon::nothing_before_the_first_and_after_the_last_round() {
  const BeaconChain chain(samples::filled(1), 10, 20);
  QVERIFY(!chain.reveal(9).ok());
  QVERIFY(chain.reveal(10).ok());
  QVERIFY(chain.reveal(29).ok());
  QVERIFY(!chain.reveal(30).ok());
  QVERIFY(!chain.reveal(0).ok());
  QVERIFY(!alone(chain.commitment(), 9, chain.commitment().tip));
  QVERIFY(!alone(chain.commitment(), 30, samples::filled(1)));
  QVERIFY(!alone(chain.commitment(), ~std::uint64_t{0}, samples::filled(1)));
}

void TestChainBeacon::a_value_holds_in_its_round_only() {
  const BeaconChain chain(samples::filled(1), 10, 20);
  const Hash256 value = *chain.reveal(15);
  for (std::uint64_t round = 8; round < 32; ++round)
    QCOMPARE(alone(chain.commitment(), round, value), round == 15);
  Hash256 other = value;
  other[31] ^= 1;
  QVERIFY(!alone(chain.commitment(), 15, other));
}

void TestChainBeacon::only_the_gap_to_a_known_value_is_hashed() {
  const BeaconChain chain(samples::filled(1), 10, 20);
  BeaconCommitment commitment = chain.commitment();
  const Hash256 known = *chain.reveal(15);
  commitment.tip = samples::filled(9);  // would not hold: the known value decides
  QVERIFY(reveal_holds(commitment, 16, *chain.reveal(16), known, 15));
  QVERIFY(reveal_holds(commitment, 29, *chain.reveal(29), known, 15));
  QVERIFY(reveal_holds(commitment, 15, known, known, 15));
  QVERIFY(reveal_holds(commitment, 12, *chain.reveal(12), known, 15));
  QVERIFY(!reveal_holds(commitment, 17, *chain.reveal(16), known, 15));
  QVERIFY(!reveal_holds(commitment, 16, *chain.reveal(16), samples::filled(3), 15));
  QVERIFY(!reveal_holds(commitment, 30, samples::filled(1), known, 15));
}

void TestChainBeacon::a_known_value_of_another_chain_is_ignored() {
  const BeaconChain before(samples::filled(2), 1, 9), chain(samples::filled(1), 10, 20);
  QVERIFY(reveal_holds(chain.commitment(), 12, *chain.reveal(12), *before.reveal(9), 9));
  QVERIFY(!reveal_holds(chain.commitment(), 12, *before.reveal(5), *before.reveal(9), 9));
}

void TestChainBeacon::the_longest_chain_verifies_at_both_ends() {
  const BeaconChain chain(samples::filled(1), 1);
  const BeaconCommitment commitment = chain.commitment();
  QCOMPARE(commitment.length, beacon_chain_length);
  QVERIFY(alone(commitment, 1, *chain.reveal(1)));
  QVERIFY2(alone(commitment, beacon_chain_length, samples::filled(1)), "a gap of 65,536 rounds");
  QVERIFY(!chain.reveal(beacon_chain_length + 1).ok());
}

void TestChainBeacon::rounds_at_the_end_of_the_numbers() {
  const BeaconChain chain(samples::filled(1), ~std::uint64_t{0} - 1, 8);
  QVERIFY(alone(chain.commitment(), ~std::uint64_t{0}, *chain.reveal(~std::uint64_t{0})));
  QVERIFY(!chain.reveal(0).ok());
  QVERIFY(!alone(chain.commitment(), 0, *chain.reveal(~std::uint64_t{0})));
}

void TestChainBeacon::the_next_beacon_depends_on_all_of_its_inputs() {
  const std::vector<Reveal> two = {{samples::filled(1), samples::filled(11)},
                                   {samples::filled(2), samples::filled(12)}};
  std::vector<Reveal> changed_value = two, changed_id = two, one = {two[0]};
  changed_value[1].value[0] ^= 1;
  changed_id[1].id[0] ^= 1;
  std::vector<Hash256> all = {
      next_beacon(samples::filled(5), 7, two),        next_beacon(samples::filled(6), 7, two),
      next_beacon(samples::filled(5), 8, two),        next_beacon(samples::filled(5), 7, changed_value),
      next_beacon(samples::filled(5), 7, changed_id), next_beacon(samples::filled(5), 7, one),
      next_beacon(samples::filled(5), 7, {}),         samples::filled(5)};
  std::sort(all.begin(), all.end());
  QVERIFY(std::adjacent_find(all.begin(), all.end()) == all.end());
}

void TestChainBeacon::lots_differ_by_purpose_beacon_and_node() {
  std::vector<Hash256> all = {lot("leader", samples::filled(5), samples::filled(1)),
                              lot("epoch", samples::filled(5), samples::filled(1)),
                              lot("leader", samples::filled(6), samples::filled(1)),
                              lot("leader", samples::filled(5), samples::filled(2)),
                              lot("", samples::filled(5), samples::filled(1))};
  std::sort(all.begin(), all.end());
  QVERIFY(std::adjacent_find(all.begin(), all.end()) == all.end());
}

NS_TEST(TestChainBeacon)
#include "test_beacon.moc"
