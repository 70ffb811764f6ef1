// The number of false wallets that stop or own a network of voters, and the rounds until they vote.
#include <QtTest>

#include "core/chain/takeover.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

class TestChainTakeover : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_numbers_are_those_of_quorums();
  void admissions_bound_it();
  void no_chain_admits_them_faster();
};

void TestChainTakeover::the_numbers_are_those_of_quorums() {
  const auto is_full = [](std::size_t some, std::size_t all) { return 3 * some > 2 * all; };
  for (std::size_t honest = 1; honest <= 100; ++honest) {
    const std::size_t freeze = wallets_to_freeze(honest), own = wallets_to_own(honest);
    QVERIFY(!is_full(honest, honest + freeze) && is_full(honest, honest + freeze - 1));
    QVERIFY(is_full(own, honest + own) && !is_full(own - 1, honest + own - 1));
  }
}

void TestChainTakeover::admissions_bound_it() {
  ChainRules rules;
  rules.admission_contributions = 8;
  QCOMPARE(least_rounds_to_vote(rules, 4, 0), std::uint64_t{0});
  QCOMPARE(least_rounds_to_vote(rules, 4, 1), std::uint64_t{8});
  QCOMPARE(least_rounds_to_vote(rules, 4, 9), std::uint64_t{16});
  QCOMPARE(least_rounds_to_vote(rules, 3, 2), std::uint64_t{2});
  // Two a round from 32 voters on.
  QCOMPARE(least_rounds_to_vote(rules, 31, 3), std::uint64_t{9});
  QCOMPARE(least_rounds_to_vote(rules, 30, 4), std::uint64_t{10});
}

// The estimate against the rules as they are applied.
void TestChainTakeover::no_chain_admits_them_faster() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto honest = chain.add_nodes(4), fakes = chain.add_nodes(3);
  QVERIFY(chain.begin(honest).ok());
  for (const std::size_t fake : fakes) QVERIFY(chain.join(fake));
  QVERIFY(chain.round_of(honest));  // in which they came
  auto all = honest;
  all.insert(all.end(), fakes.begin(), fakes.end());
  const auto counts = [&](std::size_t fake) { return chain.is_voter(fake) && chain.wallet(fake)->vouched; };
  std::size_t vouched = 0;
  std::uint64_t rounds = 0;
  while (!std::all_of(fakes.begin(), fakes.end(), counts) && rounds < 100) {
    while (vouched < fakes.size() && (vouched == 0 || counts(fakes[vouched - 1]))) {
      const std::size_t issuer = vouched == 0 ? honest[0] : fakes[vouched - 1];
      QVERIFY(chain.say(fakes[vouched], chain.vouch(fakes[vouched], issuer, 1)));
      ++vouched;
    }
    QVERIFY(chain.round_of(all));
    ++rounds;
  }
  QCOMPARE(rounds, least_rounds_to_vote(chain.rules(), honest.size(), fakes.size()));
}

NS_TEST(TestChainTakeover)
#include "test_takeover.moc"
