// What `neuroshardd simulate` runs: every scenario holds what it promises, the same seed repeats it, and
// without a defence the attacks show. NS_LONG=1 takes larger populations and more seeds (tests/long.sh
// rounds).
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

std::string text(const ScenarioResult& result) {
  std::string all = "loss " + std::to_string(result.first_loss) + " -> " + std::to_string(result.last_loss);
  for (const std::string& broken : result.broken) all += "; " + broken;
  return all;
}

}  // namespace

class TestRoundsScenarios : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_scenario_holds_data();
  void every_scenario_holds();
  void two_payloads_are_proven_to_all();
  void claimed_views_cost_no_contribution();
  void few_members_die_in_turn_data();
  void few_members_die_in_turn();
  void deaths_and_cuts_cost_little();
  void liars_gain_nothing();
  void a_plain_mean_is_no_defence();
  void the_same_seed_repeats_a_run();
  void bad_options_are_named();
};

void TestRoundsScenarios::every_scenario_holds_data() {
  QTest::addColumn<QString>("name");
  for (const ScenarioInfo& s : scenarios()) QTest::newRow(s.name.data()) << QString::fromUtf8(s.name.data());
}

void TestRoundsScenarios::every_scenario_holds() {
  QFETCH(QString, name);
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 1u); ++seed) {
    ScenarioOptions options = small(name.toStdString(), seed);
    if (in_long()) options.nodes = 5 + seed % 12;
    if (options.name == "group-killed") options.nodes = 40;  // it takes sub-groups
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), ("seed " + std::to_string(seed) + ": " + text(*result)).c_str());
    QCOMPARE(result->conflicts, std::uint64_t(0));
    QCOMPARE(result->hash_agreement_rate, 1.0);
    QVERIFY2(result->delta_cosine > 0.03 && result->delta_cosine < 0.5,
             qPrintable(QString::number(result->delta_cosine)));
  }
}

// Whoever has proof tells all others, once, and nobody listens to the liar any more: also where it told the
// other payload to one or two members only, who find out when the round is nearly over.
void TestRoundsScenarios::two_payloads_are_proven_to_all() {
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 5u); ++seed) {
    const auto result = run_scenario(small("two-payloads", seed));
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), ("seed " + std::to_string(seed) + ": " + text(*result)).c_str());
    QCOMPARE(result->evidence, std::uint64_t(2 * 7));  // by all but the liar itself
  }
}

// Two of eight say that they are in views far ahead, to each another one, and propose nothing when they lead.
void TestRoundsScenarios::claimed_views_cost_no_contribution() {
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 3u); ++seed) {
    const auto result = run_scenario(small("view-jump", seed)), clean = run_scenario(small("clean", seed));
    QVERIFY(result.ok() && clean.ok());
    QVERIFY2(result->broken.empty(), ("seed " + std::to_string(seed) + ": " + text(*result)).c_str());
    QCOMPARE(result->liars, std::size_t(2));
    QCOMPARE(result->contributions * clean->rounds, clean->contributions * result->rounds);
    // Each round has at most two views of liars before the first honest one, of 6 and 9 seconds.
    QVERIFY2(result->virtual_seconds < clean->virtual_seconds + 15 * double(result->rounds),
             text(*result).c_str());
  }
}

// Four members: one that has missed two rounds is expelled, and of the three that are left all have to sign.
void TestRoundsScenarios::few_members_die_in_turn_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<bool>("overlap");
  QTest::newRow("churn") << "churn" << false;
  QTest::newRow("churn, rounds overlap") << "churn" << true;
  QTest::newRow("leaders") << "leader-killed" << false;
  QTest::newRow("leaders, rounds overlap") << "leader-killed" << true;
}

void TestRoundsScenarios::few_members_die_in_turn() {
  QFETCH(QString, name);
  QFETCH(bool, overlap);
  for (std::uint64_t seed = 1; seed <= (in_long() ? 20u : 3u); ++seed) {
    ScenarioOptions options = small(name.toStdString(), seed);
    options.nodes = 4;
    options.rounds = 20;
    if (overlap) options.sync = rounds::RoundSync::Delayed;
    const auto result = run_scenario(options);
    QVERIFY(result.ok());
    QVERIFY2(result->broken.empty(), ("seed " + std::to_string(seed) + ": " + text(*result)).c_str());
    QCOMPARE(result->conflicts + result->counted_twice, std::uint64_t(0));
  }
}

// Of the loss without them, on average of three seeds. Not with messages lost: members train on while they
// wait, many times H steps, and this small task is then learnt by heart.
void TestRoundsScenarios::deaths_and_cuts_cost_little() {
  std::map<std::string, double> all;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const char* name : {"clean", "churn", "partition", "leader-killed"}) {
      ScenarioOptions options = small(name, seed);
      options.rounds = 20;
      const auto result = run_scenario(options);
      QVERIFY(result.ok() && result->broken.empty());
      all[name] += result->last_loss;
    }
  for (const auto& [name, loss] : all) {
    qInfo("%s: %+.2f %%", name.c_str(), 100 * (loss / all["clean"] - 1));
    QVERIFY2(loss < 1.015 * all["clean"], name.c_str());
  }
}

// Near the plateau: in the middle of the descent liars make the steps shorter, and the loss is up to a tenth
// behind for a while (docs/measurements.md).
void TestRoundsScenarios::liars_gain_nothing() {
  const auto long_enough = [](const char* name) {
    ScenarioOptions options = small(name);
    options.rounds = 20;
    return options;
  };
  const double clean = run_scenario(long_enough("clean"))->last_loss;
  for (const char* name : {"sign-flip-10", "inner-product", "inflated-tokens", "nan"}) {
    const auto result = run_scenario(long_enough(name));
    QVERIFY(result.ok());
    QVERIFY2(result->last_loss < 1.05 * clean,
             (std::string(name) + ": clean " + std::to_string(clean) + ", " + text(*result)).c_str());
  }
}

void TestRoundsScenarios::a_plain_mean_is_no_defence() {
  ScenarioOptions options = small("sign-flip-10");
  options.plain_mean = true;
  const auto result = run_scenario(options);
  QVERIFY(result.ok());
  QVERIFY2(!result->broken.empty() || result->last_loss > 1.2 * run_scenario(small("clean"))->last_loss,
           text(*result).c_str());
}

void TestRoundsScenarios::the_same_seed_repeats_a_run() {
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

void TestRoundsScenarios::bad_options_are_named() {
  const auto unknown = run_scenario(small("earthquake"));
  QCOMPARE(unknown.error().code, ErrorCode::InvalidArgument);
  QVERIFY(unknown.error().message.find("partition") != std::string::npos);
  ScenarioOptions many = small("clean");
  many.nodes = 20'000;
  QCOMPARE(run_scenario(many).error().code, ErrorCode::InvalidArgument);
  ScenarioOptions liars = small("zero");
  liars.liars = 4;
  QCOMPARE(run_scenario(liars).error().code, ErrorCode::InvalidArgument);
}

NS_TEST(TestRoundsScenarios)
#include "test_rounds_scenarios.moc"
