// What `neuroshardd simulate` runs: every scenario holds what it promises, the same seed repeats it, and
// without a defence the attacks show. NS_LONG=1 takes larger populations and more seeds (tests/long.sh
// rounds).
#include <fmt/format.h>

#include <QtTest>
#include <map>
#include <string>

#include "core/sim/scenario.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

bool in_long() {
  return qEnvironmentVariableIntValue("NS_LONG") != 0;
}

ScenarioOptions small(const std::string& name, std::uint64_t seed = 1) {
  ScenarioOptions options;
  options.name = name;
  options.seed = seed;
  options.nodes = 8;
  options.rounds = 7;
  options.inner_steps = 10;
  return options;
}

std::string text(const ScenarioOptions& options, const ScenarioResult& result) {
  std::string all = fmt::format("{}, {} nodes, seed {}: loss {:.4f} -> {:.4f}, {} rounds in {:.0f} s",
                                options.name, options.nodes, options.seed, result.first_loss,
                                result.last_loss, result.rounds, result.virtual_seconds);
  for (const std::string& broken : result.broken) all += "; " + broken;
  return all;
}

const rounds::SyncChoice delayed{rounds::RoundSync::Delayed, 1};
const rounds::SyncChoice four_fragments{rounds::RoundSync::Delayed, 4};

class TestChainScenarios : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_scenario_holds_data();
  void every_scenario_holds();
  void an_expulsion_in_a_round_freezes_nothing();
  void few_members_die_in_turn_data();
  void few_members_die_in_turn();
  void overlapping_rounds_hold_data();
  void overlapping_rounds_hold();
  void deaths_and_cuts_cost_little();
  void byzantine_nodes_gain_nothing();
  void claimed_views_cost_few_contributions();
  void false_evidence_and_votes_cost_no_contribution();
  void a_plain_mean_is_no_defence();
  void the_same_seed_repeats_a_run();
  void bad_options_are_named();
};

void TestChainScenarios::every_scenario_holds_data() {
  QTest::addColumn<QString>("name");
  for (const ScenarioInfo& s : scenarios()) QTest::newRow(s.name.data()) << QString::fromUtf8(s.name.data());
}

void TestChainScenarios::every_scenario_holds() {
  QFETCH(QString, name);
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 1u); ++seed) {
    ScenarioOptions options = small(name.toStdString(), seed);
    if (in_long()) options.nodes = 5 + seed % 12;
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), text(options, *result).c_str());
    QVERIFY2(result->delta_cosine > 0.03 && result->delta_cosine < 0.5,
             qPrintable(QString::number(result->delta_cosine)));
  }
}

// The members expel the Byzantine nodes after some of them have signed vectors that list these nodes.
void TestChainScenarios::an_expulsion_in_a_round_freezes_nothing() {
  for (std::uint64_t seed = 1; seed <= (in_long() ? 100u : 10u); ++seed) {
    const ScenarioOptions options = small("copied-delta", seed);
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), text(options, *result).c_str());
  }
}

// Four members: of the three that are left where one is dead, all have to sign, or the stall rule helps.
void TestChainScenarios::few_members_die_in_turn_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<bool>("overlap");
  QTest::newRow("churn") << "churn" << false;
  QTest::newRow("churn, rounds overlap") << "churn" << true;
  QTest::newRow("leaders") << "leader-killed" << false;
  QTest::newRow("leaders, rounds overlap") << "leader-killed" << true;
}

void TestChainScenarios::few_members_die_in_turn() {
  QFETCH(QString, name);
  QFETCH(bool, overlap);
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 1u); ++seed) {
    ScenarioOptions options = small(name.toStdString(), seed);
    options.nodes = 4 + seed % 2;
    options.rounds = 12;
    if (overlap) options.sync = delayed;
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), text(options, *result).c_str());
  }
}

void TestChainScenarios::overlapping_rounds_hold_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<bool>("fragments");
  for (const char* name : {"churn", "lossy", "partition", "night", "leader-killed", "late-joiner",
                           "corrupted-replica", "slow-node", "two-payloads", "stale-base", "sign-flip-10"})
    QTest::addRow("%s, delayed-1", name) << name << false;
  for (const char* name : {"clean", "churn", "lossy", "partition", "leader-killed"})
    QTest::addRow("%s, four fragments", name) << name << true;
}

void TestChainScenarios::overlapping_rounds_hold() {
  QFETCH(QString, name);
  QFETCH(bool, fragments);
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 1u); ++seed) {
    ScenarioOptions options = small(name.toStdString(), seed);
    options.sync = fragments ? four_fragments : delayed;
    if (fragments) {
      options.inner_steps = 24;
      options.rounds = 14;
    }
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), text(options, *result).c_str());
  }
}

// Of the loss without them, on average of three seeds. Not with messages lost: members train on while they
// wait, many times H steps, and this small task is then learnt by heart.
void TestChainScenarios::deaths_and_cuts_cost_little() {
  std::map<std::string, double> all;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const char* name : {"clean", "churn", "partition", "leader-killed"}) {
      ScenarioOptions options = small(name, seed);
      options.rounds = 20;
      const auto result = run_scenario(options);
      QVERIFY(result.ok());
      QVERIFY2(result->broken.empty(), text(options, *result).c_str());
      all[name] += result->last_loss;
    }
  for (const auto& [name, loss] : all) {
    qInfo("%s: %+.2f %%", name.c_str(), 100 * (loss / all["clean"] - 1));
    QVERIFY2(loss < 1.015 * all["clean"], name.c_str());
  }
}

// Near the plateau: in the middle of the descent attackers make the steps shorter, and the loss is up to a tenth
// behind for a while (docs/measurements.md).
void TestChainScenarios::byzantine_nodes_gain_nothing() {
  const auto long_enough = [](const char* name) {
    ScenarioOptions options = small(name);
    options.rounds = 30;
    return options;
  };
  const double clean = run_scenario(long_enough("clean"))->last_loss;
  for (const char* name : {"sign-flip-10", "inner-product", "inflated-tokens", "nan"}) {
    const ScenarioOptions options = long_enough(name);
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->last_loss < 1.05 * clean,
             (text(options, *result) + ", clean " + std::to_string(clean)).c_str());
  }
}

// Two of eight say that they are in views far ahead, to each another one, and propose nothing when they lead.
void TestChainScenarios::claimed_views_cost_few_contributions() {
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 2u); ++seed) {
    const ScenarioOptions options = small("view-jump", seed);
    const auto result = run_scenario(options), clean = run_scenario(small("clean", seed));
    QVERIFY(result.ok() && clean.ok());
    QVERIFY2(result->broken.empty(), text(options, *result).c_str());
    QCOMPARE(result->byzantine, std::size_t(2));
    const QString seen = QString("%1 in %2 rounds, %3 in %4 without")
                             .arg(result->contributions)
                             .arg(result->rounds)
                             .arg(clean->contributions)
                             .arg(clean->rounds);
    QVERIFY2(20 * result->contributions * clean->rounds >= 19 * clean->contributions * result->rounds,
             qPrintable(seen));
    // Each of a round's two blocks has at most two views of Byzantine leaders before the first honest one.
    QVERIFY2(result->virtual_seconds < clean->virtual_seconds + 2 * 8 * double(result->rounds),
             text(options, *result).c_str());
  }
}

void TestChainScenarios::false_evidence_and_votes_cost_no_contribution() {
  const auto clean = run_scenario(small("clean"));
  for (const char* name : {"false-proof", "replay"}) {
    const ScenarioOptions options = small(name);
    const auto result = run_scenario(options);
    QVERIFY2(result.ok() && result->broken.empty(), text(options, *result).c_str());
    QCOMPARE(result->evidence, std::uint64_t(0));
    QVERIFY2(result->contributions * clean->rounds >= clean->contributions * result->rounds, name);
    QVERIFY2(result->virtual_seconds < clean->virtual_seconds + double(result->rounds), name);
  }
}

void TestChainScenarios::a_plain_mean_is_no_defence() {
  ScenarioOptions options = small("sign-flip-10");
  options.plain_mean = true;
  const auto result = run_scenario(options);
  QVERIFY(result.ok());
  QVERIFY2(!result->broken.empty() || result->last_loss > 1.2 * run_scenario(small("clean"))->last_loss,
           text(options, *result).c_str());
}

void TestChainScenarios::the_same_seed_repeats_a_run() {
  for (const char* name : {"lossy", "churn", "alie"}) {
    const auto a = run_scenario(small(name, 5)), b = run_scenario(small(name, 5)),
               c = run_scenario(small(name, 6));
    QVERIFY(a.ok() && b.ok() && c.ok());
    QCOMPARE(a->losses, b->losses);
    QCOMPARE(a->messages, b->messages);
    QCOMPARE(a->bytes, b->bytes);
    QCOMPARE(a->virtual_seconds, b->virtual_seconds);
    QVERIFY(a->losses != c->losses);
  }
}

void TestChainScenarios::bad_options_are_named() {
  const auto unknown = run_scenario(small("earthquake"));
  QCOMPARE(unknown.error().code, ErrorCode::InvalidArgument);
  QVERIFY(unknown.error().message.find("partition") != std::string::npos);
  ScenarioOptions many = small("clean");
  many.nodes = most_scenario_nodes + 1;
  QCOMPARE(run_scenario(many).error().code, ErrorCode::InvalidArgument);
  ScenarioOptions too_many = small("zero");
  too_many.byzantine = 4;
  QCOMPARE(run_scenario(too_many).error().code, ErrorCode::InvalidArgument);
  ScenarioOptions forged_parts = small("zero");
  forged_parts.sync = four_fragments;
  QCOMPARE(run_scenario(forged_parts).error().code, ErrorCode::InvalidArgument);
}

}  // namespace

NS_TEST(TestChainScenarios)
#include "test_chain_scenarios.moc"
