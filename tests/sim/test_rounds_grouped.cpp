// Rounds of two levels among many nodes in the simulated world: all take the same anchors, whoever dies or
// lies, and messages grow with the sub-groups, not with the nodes' squares.
#include <QtTest>

#include "core/sim/grouped_world.h"
#include "core/sim/scenario.h"
#include "core/sim/soft_model.h"
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

double messages_per_node(const ScenarioResult& result, std::size_t nodes) {
  return static_cast<double>(result.messages) / static_cast<double>(nodes) /
         static_cast<double>(result.rounds);
}

// A world that is cut in two between sub-groups, so that each half has whole ones.
RoundWorldSeen when_cut(std::size_t least) {
  outer::SoftTaskOptions task_options;
  task_options.features = 32;
  const auto task = *outer::SoftTask::make(task_options);
  GroupedWorldOptions o;
  o.nodes = 32;
  o.least = least;
  o.initial = task->initial_weights();
  o.round.rules.network.fill(0x5a);
  o.round.rules.values = task->parameters();
  o.round.rules.inner_steps = 5;
  o.round.rules.most_tokens = 1000;
  o.round.grace = std::chrono::seconds(2);
  o.round.group_wait = std::chrono::seconds(3);
  o.round.top = {std::chrono::seconds(15), std::chrono::seconds(40)};
  o.trainer.inner_steps = 5;
  o.trainer.tokens_per_step = 32;
  GroupedWorld world(o, [&](std::size_t node, std::uint64_t) -> std::unique_ptr<LocalModel> {
    return std::make_unique<SoftModel>(task, node, outer::SoftLearnerOptions{}, 0);
  });
  for (std::size_t i = 0; i < world.size(); ++i) world.start(i);
  const rounds::Deal& deal = world.node(0).deal();
  for (std::size_t g = 0; g < deal.groups.size(); ++g)
    for (const rounds::RoundMember& member : *deal.groups[g])
      world.set_part(world.index_of(member.id), g % 2 == 0 ? 0 : 1);
  world.world().run_for(std::chrono::minutes(4));
  return world.seen();
}

}  // namespace

class TestRoundsGroupedSim : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void all_take_the_same_anchors_data();
  void all_take_the_same_anchors();
  void liars_gain_nothing();
  void messages_do_not_grow_with_the_square();
  void the_same_seed_repeats_a_run();
  void a_cut_between_sub_groups_certifies_nothing();
  void with_fewer_signatures_two_anchors_are_certified();
  void sizes_out_of_range_are_named();
};

void TestRoundsGroupedSim::all_take_the_same_anchors_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<int>("nodes");
  QTest::addColumn<int>("rounds");
  QTest::newRow("17") << "clean" << 17 << 3;
  QTest::newRow("32") << "clean" << 32 << 3;
  QTest::newRow("100") << "clean" << 100 << 1;
  QTest::newRow("a sub-group dies") << "group-killed" << 40 << 5;
  QTest::newRow("leaders die") << "leader-killed" << 32 << 3;
  QTest::newRow("churn") << "churn" << 40 << 4;
  QTest::newRow("loss") << "lossy" << 24 << 3;
  QTest::newRow("cut in two") << "partition" << 24 << 5;
  QTest::newRow("late joiner") << "late-joiner" << 24 << 6;
  QTest::newRow("broken memory") << "corrupted-replica" << 24 << 5;
  QTest::newRow("two payloads") << "two-payloads" << 32 << 3;
  QTest::newRow("replay") << "replay" << 24 << 3;
  QTest::newRow("stale base") << "stale-base" << 24 << 3;
  QTest::newRow("copied delta") << "copied-delta" << 24 << 3;
  QTest::newRow("claimed views") << "view-jump" << 24 << 3;
}

void TestRoundsGroupedSim::all_take_the_same_anchors() {
  QFETCH(QString, name);
  QFETCH(int, nodes);
  QFETCH(int, rounds);
  const auto result = run_scenario(of(name.toStdString(), std::size_t(nodes), std::uint32_t(rounds)));
  QVERIFY2(result.ok() && result->broken.empty(), text(result).c_str());
  QVERIFY2(result->rounds >= std::uint64_t(rounds), text(result).c_str());
  QCOMPARE(result->conflicts, std::uint64_t(0));
  QCOMPARE(result->hash_agreement_rate, 1.0);
  if (name == "clean") {
    QCOMPARE(result->contributions, std::uint64_t(nodes) * result->rounds);
    QCOMPARE(result->group_results, result->groups * result->rounds);
  }
}

void TestRoundsGroupedSim::liars_gain_nothing() {
  const auto clean = run_scenario(of("clean", 32, 5));
  QVERIFY2(clean.ok() && clean->broken.empty(), text(clean).c_str());
  const auto result = run_scenario(of("sign-flip-10", 32, 5));
  QVERIFY2(result.ok() && result->broken.empty(), text(result).c_str());
  QCOMPARE(result->liars, std::size_t(4));
  QVERIFY2(result->last_loss < 1.1 * clean->last_loss, (text(clean) + " / " + text(result)).c_str());
  // What the rules are for.
  ScenarioOptions plain = of("sign-flip-10", 32, 5);
  plain.plain_mean = true;
  const auto undefended = run_scenario(plain);
  QVERIFY(undefended.ok());
  QVERIFY2(!undefended->broken.empty() || undefended->last_loss > 1.2 * clean->last_loss,
           text(undefended).c_str());
}

void TestRoundsGroupedSim::messages_do_not_grow_with_the_square() {
  const auto small = run_scenario(of("clean", 24, 1)), large = run_scenario(of("clean", 72, 1));
  QVERIFY(small.ok() && large.ok() && small->broken.empty() && large->broken.empty());
  const double few = messages_per_node(*small, 24), many = messages_per_node(*large, 72);
  QVERIFY2(many < 2 * few, qPrintable(QString("%1 and %2 messages").arg(few).arg(many)));
  QVERIFY(large->certificate_bytes < 6 * small->certificate_bytes);
}

void TestRoundsGroupedSim::the_same_seed_repeats_a_run() {
  const auto a = run_scenario(of("churn", 24, 3)), b = run_scenario(of("churn", 24, 3));
  QVERIFY(a.ok() && b.ok());
  QCOMPARE(a->losses, b->losses);
  QCOMPARE(a->messages, b->messages);
  QCOMPARE(a->bytes, b->bytes);
}

void TestRoundsGroupedSim::a_cut_between_sub_groups_certifies_nothing() {
  QCOMPARE(when_cut(0).rounds, std::uint64_t(0));
}

void TestRoundsGroupedSim::with_fewer_signatures_two_anchors_are_certified() {
  QVERIFY(when_cut(12).conflicts > 0);
}

void TestRoundsGroupedSim::sizes_out_of_range_are_named() {
  QCOMPARE(run_scenario(of("clean", rounds::max_grouped_members + 1, 1)).error().code,
           ErrorCode::InvalidArgument);
  QCOMPARE(run_scenario(of("group-killed", 31, 1)).error().code, ErrorCode::InvalidArgument);
  ScenarioOptions one = of("clean", 65, 1);
  one.one_group = true;
  QCOMPARE(run_scenario(one).error().code, ErrorCode::InvalidArgument);
}

NS_TEST(TestRoundsGroupedSim)
#include "test_rounds_grouped.moc"
