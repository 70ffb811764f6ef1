// Networks that decide who holds which slots while computers come and go. NS_LONG=1 takes more seeds.
#include <QtTest>

#include "core/sim/plan_scenario.h"
#include "core/sim/slot_transfers.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

PlanScenarioOptions options_of(const std::string& name, std::size_t nodes, double hours, std::uint64_t seed) {
  PlanScenarioOptions options;
  options.name = name;
  options.nodes = nodes;
  options.hours = hours;
  options.seed = seed;
  options.effort = 0.1;
  options.rules = plan::test::mainnet_rules();
  options.boundary_bytes = [](const compute::ModelShape& shape) { return 4.0 + shape.hidden; };
  return options;
}

PlanScenarioResult run(const PlanScenarioOptions& options) {
  auto result = run_plan_scenario(options);
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "; ";
  return all;
}

}  // namespace

class TestPlans : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // A fifth of the nodes leaves in each hour, without a word. Control: with two owners of a slot, slots are lost.
  void slots_survive_churn() {
    std::uint64_t lost_with_two = 0;
    double moved = 0, joined_bytes = 0;
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
      PlanScenarioOptions options = options_of("plan-churn", 24, 4, seed);
      const PlanScenarioResult five = run(options);
      options.replicas = 2;
      const PlanScenarioResult two = run(options);
      qInfo(
          "seed %llu: %llu nodes left; with 5 owners %llu lost, %.2f of the bound; with 2 owners %llu lost, "
          "%.2f",
          static_cast<unsigned long long>(seed), static_cast<unsigned long long>(five.run.departures),
          static_cast<unsigned long long>(five.run.lost), five.run.tokens / five.run.bound_tokens,
          static_cast<unsigned long long>(two.run.lost), two.run.tokens / two.run.bound_tokens);
      QVERIFY2(five.broken.empty(), joined(five.broken).c_str());
      QVERIFY(five.run.departures > 0 && five.run.least_owners >= 1);
      QVERIFY(five.run.tokens >= 0.3 * five.run.bound_tokens);
      moved += five.run.moved_bytes;
      joined_bytes += five.run.joined_bytes;
      lost_with_two += two.run.lost + two.run.stalls;
    }
    QVERIFY(lost_with_two > 0);
    QVERIFY(moved <= joined_bytes);
  }

  // Of the planners that know when nodes leave and train as much, the best one moves two thirds of the bytes or more.
  void knowing_the_future_saves_little() {
    PlanScenarioOptions options = options_of("plan-churn", 24, 1.5, 3);
    options.compare = true;
    const PlanScenarioResult result = run(options);
    double least = 1;
    for (const ForeseenRun& other : result.foreseen) {
      qInfo("knows %.2f h: %.3f of the bytes, %.3f of the tokens", other.hours, other.bytes, other.tokens);
      if (other.tokens >= 0.98 && other.lost == 0) least = std::min(least, other.bytes);
    }
    QCOMPARE(result.foreseen.size(), std::size_t{4});
    QVERIFY(least >= 1 / 1.5);
  }

  void a_growing_network_grows_its_model() {
    const PlanScenarioResult result = run(options_of("plan-growth", 50, 5, 1));
    QVERIFY2(result.broken.empty(), joined(result.broken).c_str());
    QVERIFY(!result.run.changes.empty());
    for (const ShapeChange& change : result.run.changes) {
      qInfo("after %.1f h: %u layers of width %u -> %u of %u", change.hour, change.before.layers,
            change.before.hidden, change.after.layers, change.after.hidden);
      QVERIFY(compute::model_parameter_count(change.after) > compute::model_parameter_count(change.before));
    }
    QVERIFY(result.run.throughput.back() > 0);
  }

  void unequal_homes_keep_all_slots() {
    const PlanScenarioResult result = run(options_of("plan-homes", 24, 2, 1));
    QVERIFY2(result.broken.empty(), joined(result.broken).c_str());
    QVERIFY(result.run.tokens > 0);
  }

  // The scenario says itself when more than 5 % are lost at the end. Control: the first plan believes what is declared.
  void false_declarations_cost_little_in_the_end() {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
      const PlanScenarioResult result = run(options_of("plan-false", 30, 3, seed));
      QVERIFY2(result.broken.empty(), joined(result.broken).c_str());
      QVERIFY(result.of_honest.has_value() && result.settled_round.has_value());
      qInfo("seed %llu: %.3f of the honest throughput, 0.95 from round %zu on",
            static_cast<unsigned long long>(seed), *result.of_honest, *result.settled_round);
      QVERIFY(result.run.throughput.front() < 0.95 * result.run.throughput.back());
    }
  }

  void nodes_that_come_back_fetch_again() {
    PlanScenarioOptions options = options_of("plan-churn", 24, 2, 1);
    options.returning = 0.8;
    const PlanScenarioResult result = run(options);
    QVERIFY2(result.broken.empty(), joined(result.broken).c_str());
    QVERIFY(result.run.arrivals > 0 && result.run.bytes > 0);
  }

  void the_same_seed_repeats_a_run() {
    const PlanScenarioOptions options = options_of("plan-churn", 16, 1, 7);
    const PlanScenarioResult one = run(options), other = run(options);
    QCOMPARE(one.run.tokens, other.run.tokens);
    QCOMPARE(one.run.bytes, other.run.bytes);
    QCOMPARE(one.run.throughput, other.run.throughput);
  }

  void options_out_of_range_are_named() {
    const auto message = [](const PlanScenarioOptions& options) {
      const auto result = run_plan_scenario(options);
      return result.ok() ? std::string() : result.error().message;
    };
    PlanScenarioOptions options = options_of("plan-sun", 24, 3, 1);
    QVERIFY(message(options).find("plan-sun") != std::string::npos);
    options = options_of("plan-churn", 2, 3, 1);
    QVERIFY(message(options).find("3 to 5000") != std::string::npos);
    options = options_of("plan-churn", 24, -1, 1);
    QVERIFY(message(options).find("hours") != std::string::npos);
    options = options_of("plan-churn", 24, 1, 1);
    options.leaving_per_hour = 7;
    QVERIFY(message(options).find("churn") != std::string::npos);
    options = options_of("plan-churn", 24, 1, 1);
    options.returning = 1;
    QVERIFY(message(options).find("return") != std::string::npos);
  }

  void transfers_share_lines() {
    const plan::Chain chain =
        plan::Chain::of_units({{"a", 1, 1'000}, {"b", 1, 1'000}, {"c", 1, 1'000}}, {1, 1, 1}, 0, 1).value();
    TransferNode source, first, second, rich;
    source.up = 100;
    source.gives = source.has = UnitSet(0b011);
    first.down = 30;
    first.wanted = {0, 2};
    second.down = 1'000;
    second.wanted = {1, 2};
    rich.down = 500;
    rich.wanted = {2, 3};
    const std::vector<TransferNode*> nodes = {&source, &first, &second, &rich};
    // Two fetch of the source: 50 for each, of which the first one's line takes 30. Unit c comes from an archive.
    QCOMPARE(transfer(chain, nodes, UnitSet(0b100), 1), 30.0 + 50 + 500);
    QCOMPARE(first.progress, 30.0);
    QCOMPARE(second.progress, 50.0);
    for (int i = 0; i < 100; ++i) transfer(chain, nodes, UnitSet(0b100), 1);
    QVERIFY(first.has.test(0) && first.has.test(1) && second.has.test(1) && rich.has.test(2));
    QCOMPARE(next_unit(first, 3), 3u);
    // Nobody gives what nobody has.
    first.wanted = {2, 3};
    QCOMPARE(transfer(chain, {&source, &first}, UnitSet(), 10), 0.0);
  }

  void homes_leave_as_often_as_asked() {
    HomesOptions options;
    options.nodes = 2'000;
    options.hours = 10;
    options.inflated = 0.2;
    const std::vector<Home> homes = make_homes(options);
    options.returning = 0.5;
    std::size_t sessions = 0, of_returning = 0;
    for (const Home& home : make_homes(options)) of_returning = std::max(of_returning, home.sessions.size());
    for (const Home& home : homes) sessions = std::max(sessions, home.sessions.size());
    QCOMPARE(sessions, std::size_t{1});
    QVERIFY(of_returning > 1);
    double left = 0, node_hours = 0, at_start = 0, inflated = 0;
    for (const Home& home : homes) {
      inflated += home.declared.memory > home.peer.memory ? 1 : 0;
      for (const Session& session : home.sessions) {
        at_start += session.from <= 0 && session.to > 0 ? 1 : 0;
        const auto from = std::max<std::int64_t>(session.from, 0),
                   to = std::min<std::int64_t>(session.to, 36'000);
        if (to <= from) continue;
        node_hours += static_cast<double>(to - from) / 3'600;
        left += session.to < 36'000 ? 1 : 0;
      }
    }
    qInfo("%.0f nodes at the start, %.3f leave in an hour", at_start, left / node_hours);
    QVERIFY(at_start > 1'800 && at_start < 2'200);
    QVERIFY(left / node_hours > 0.18 && left / node_hours < 0.22);
    QVERIFY(inflated / static_cast<double>(homes.size()) > 0.18 &&
            inflated / static_cast<double>(homes.size()) < 0.22);
  }
};

NS_TEST(TestPlans)
#include "test_plans.moc"
