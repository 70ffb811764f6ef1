// What liars below a third cost rounds of two levels: their own contributions, and little time; not those of
// the sub-groups that they are in.
#include <QtTest>
#include <string>

#include "core/sim/scenario.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

ScenarioOptions of(const std::string& name, std::size_t nodes, std::uint32_t rounds) {
  ScenarioOptions options;
  options.name = name;
  options.nodes = nodes;
  options.rounds = rounds;
  options.inner_steps = 5;
  return options;
}

std::string text(const Expected<ScenarioResult>& result) {
  if (!result.ok()) return result.error().message;
  std::string all = "loss " + std::to_string(result->first_loss) + " -> " + std::to_string(result->last_loss);
  for (const std::string& broken : result->broken) all += "; " + broken;
  return all;
}

}  // namespace

class TestRoundsHostile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void claimed_views_cost_few_contributions();
  void what_is_made_up_costs_nothing_data();
  void what_is_made_up_costs_nothing();
  void two_payloads_cost_the_liars_only_data();
  void two_payloads_cost_the_liars_only();
};

// Three of 24 say that they are in views far ahead, and propose nothing when they lead: a sub-group whose
// leader says nothing is waited for. (Where all three are in one sub-group of eight, that is left out.)
void TestRoundsHostile::claimed_views_cost_few_contributions() {
  std::uint64_t contributions = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    ScenarioOptions options = of("view-jump", 24, 6);
    options.seed = seed;
    const auto result = run_scenario(options);
    QVERIFY2(result.ok() && result->broken.empty(), text(result).c_str());
    QCOMPARE(result->liars, std::size_t(3));
    QCOMPARE(result->conflicts, std::uint64_t(0));
    contributions += result->contributions;
    all += 24 * result->rounds;
  }
  QVERIFY2(20 * contributions >= 19 * all, qPrintable(QString("%1 of %2").arg(contributions).arg(all)));
}

void TestRoundsHostile::what_is_made_up_costs_nothing_data() {
  QTest::addColumn<QString>("name");
  QTest::newRow("proofs") << "false-proof";
  // Speakers pass on votes that they can't judge: who votes for twenty bodies takes nobody's place there.
  QTest::newRow("votes") << "false-votes";
}

void TestRoundsHostile::what_is_made_up_costs_nothing() {
  QFETCH(QString, name);
  const auto result = run_scenario(of(name.toStdString(), 24, 3)), clean = run_scenario(of("clean", 24, 3));
  QVERIFY2(result.ok() && result->broken.empty(), text(result).c_str());
  QVERIFY2(clean.ok() && clean->broken.empty(), text(clean).c_str());
  QCOMPARE(result->liars, std::size_t(3));
  QVERIFY(result->refused > 0);
  QCOMPARE(result->evidence, std::uint64_t(0));
  QCOMPARE(result->contributions * clean->rounds, clean->contributions * result->rounds);
  // Speakers wait half a second for all votes of their sub-group, twice in a round.
  const QString seen = QString("%1 and %2 s").arg(result->virtual_seconds).arg(clean->virtual_seconds);
  QVERIFY2(result->virtual_seconds < clean->virtual_seconds + double(result->rounds + 1), qPrintable(seen));
  // Nobody's own vote is refused for want of room.
  for (const auto& [reason, posts] : result->refused_by) QVERIFY2(reason != "another view", qPrintable(seen));
}

void TestRoundsHostile::two_payloads_cost_the_liars_only_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<double>("loss");
  QTest::newRow("24") << 24 << 0.0;
  QTest::newRow("32") << 32 << 0.0;
  QTest::newRow("24, a fifth of messages lost") << 24 << 0.2;
}

// Who has sent two payloads in one sub-group is known to all others, too, so that each liar can hold up one
// sub-group once, and not long: the work of the honest is in.
void TestRoundsHostile::two_payloads_cost_the_liars_only() {
  QFETCH(int, nodes);
  QFETCH(double, loss);
  std::uint64_t contributions = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= (loss > 0 ? 1u : 2u); ++seed) {
    ScenarioOptions options = of("two-payloads", std::size_t(nodes), 6);
    options.seed = seed;
    options.loss = loss;
    const auto result = run_scenario(options);
    QVERIFY2(result.ok() && result->broken.empty(), text(result).c_str());
    const std::size_t liars = std::size_t(nodes) / 8;
    QCOMPARE(result->liars, liars);
    // By each other node once, whoever of them was in a sub-group with whom.
    QCOMPARE(result->evidence, std::uint64_t(liars * std::size_t(nodes - 1)));
    QVERIFY2(result->liars_counted <= liars, qPrintable(QString::number(result->liars_counted)));
    contributions += result->contributions;
    all += (std::uint64_t(nodes) - liars) * result->rounds;
  }
  const QString seen = QString("%1 of %2").arg(contributions).arg(all);
  qInfo("%s", qPrintable(seen));
  if (loss == 0) QVERIFY2(100 * contributions >= 95 * all, qPrintable(seen));
}

NS_TEST(TestRoundsHostile)
#include "test_rounds_hostile.moc"
