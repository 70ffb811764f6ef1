#include "app/node/commands/simulate/simulate_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/commands/plan/boundary_bytes.h"
#include "core/runtime/growth_rules.h"

namespace neuroshard::app {
namespace {

using nlohmann::ordered_json;

double share_of_bound(const sim::PlanWorldResult& run) {
  return run.bound_tokens > 0 ? run.tokens / run.bound_tokens : 0;
}

ordered_json shape_json(const compute::ModelShape& shape) {
  return {{"layers", shape.layers}, {"hidden", shape.hidden}};
}

ordered_json to_json(const sim::PlanScenarioOptions& options, const sim::PlanScenarioResult& result,
                     double wall_seconds) {
  const sim::PlanWorldResult& run = result.run;
  ordered_json changes = ordered_json::array(), foreseen = ordered_json::array();
  for (const sim::ShapeChange& change : run.changes)
    changes.push_back(
        {{"hour", change.hour}, {"before", shape_json(change.before)}, {"after", shape_json(change.after)}});
  for (const sim::ForeseenRun& other : result.foreseen)
    foreseen.push_back(
        {{"hours", other.hours}, {"tokens", other.tokens}, {"bytes", other.bytes}, {"lost", other.lost}});
  ordered_json json = {{"scenario", options.name},
                       {"nodes", options.nodes},
                       {"hours", options.hours},
                       {"seed", options.seed},
                       {"replicas", options.replicas},
                       {"shape", shape_json(run.shape)},
                       {"rounds", run.rounds},
                       {"homes", run.homes},
                       {"present_at_end", run.present_at_end},
                       {"departures", run.departures},
                       {"arrivals", run.arrivals},
                       {"tokens", run.tokens},
                       {"of_bound", share_of_bound(run)},
                       {"throughput", run.throughput},
                       {"lost", run.lost},
                       {"stalls", run.stalls},
                       {"stalled_seconds", run.stalled_seconds},
                       {"bytes", run.bytes},
                       {"joined_bytes", run.joined_bytes},
                       {"moved_bytes", run.moved_bytes},
                       {"unused_bytes", run.unused_bytes},
                       {"moves", run.moves},
                       {"least_owners", run.least_owners},
                       {"short_share", run.short_share},
                       {"refused", run.refused},
                       {"changes", changes},
                       {"foreseen", foreseen},
                       {"slowest_plan_seconds", run.slowest_plan_seconds},
                       {"wall_seconds", wall_seconds},
                       {"broken", result.broken}};
  if (result.of_honest) json["of_honest"] = *result.of_honest;
  if (result.settled_round) json["settled_round"] = *result.settled_round;
  return json;
}

std::string rounded_gigabytes(double bytes) {
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

void show(const sim::PlanScenarioOptions& options, const sim::PlanScenarioResult& result, double wall_seconds,
          Output& output) {
  const sim::PlanWorldResult& run = result.run;
  const auto row = [&](std::string_view name, const std::string& value) {
    output.line(fmt::format("  {:<26} {}", name, value));
  };
  output.line(fmt::format("{}: {} nodes, seed {}, {} rounds, {:g} h of virtual time ({:.1f} s here)",
                          options.name, options.nodes, options.seed, run.rounds, options.hours,
                          wall_seconds));
  row("model", fmt::format("{} layers of width {} at the end", run.shape.layers, run.shape.hidden));
  for (const sim::ShapeChange& change : run.changes)
    row(fmt::format("  after {:.1f} hours", change.hour),
        fmt::format("{} layers of width {} -> {} of {}", change.before.layers, change.before.hidden,
                    change.after.layers, change.after.hidden));
  row("nodes",
      fmt::format("{} left and {} came, {} at the end", run.departures, run.arrivals, run.present_at_end));
  row("trained", fmt::format("{:.3g} tokens, {:.0f} % of a bound that no plan exceeds", run.tokens,
                             100 * share_of_bound(run)));
  row("lost slots", fmt::format("{}", run.lost));
  row("training stopped", fmt::format("{} times, {:.0f} s", run.stalls, run.stalled_seconds));
  row("owners of a slot", fmt::format("{} or more; fewer than {} in {:.1f} % of the time", run.least_owners,
                                      options.replicas, 100 * run.short_share));
  row("fetched", fmt::format("{}; {} by nodes that left before they served", rounded_gigabytes(run.bytes),
                             rounded_gigabytes(run.unused_bytes)));
  row("planned",
      fmt::format("{} for newcomers, {} for {} moves of others", rounded_gigabytes(run.joined_bytes),
                  rounded_gigabytes(run.moved_bytes), run.moves));
  row("slowest plan", fmt::format("{:.2f} s", run.slowest_plan_seconds));
  if (result.of_honest)
    row("beside true declarations",
        fmt::format("{:.1f} % of the throughput at the end", 100 * *result.of_honest));
  if (result.settled_round) row("95 % or more", fmt::format("from round {} on", *result.settled_round));
  for (const sim::ForeseenRun& other : result.foreseen)
    row(fmt::format("knows {:g} h ahead", other.hours),
        fmt::format("{:.3f} of the bytes, {:.3f} of the tokens, {} lost", other.bytes, other.tokens,
                    other.lost));
  for (const std::string& broken : result.broken) output.line("  BROKEN: " + broken);
}

}  // namespace

Expected<void> simulate_plans(sim::PlanScenarioOptions options, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(
      const config::NetworkProfile profile,
      config::load_network_profile(context.files, context.profile.empty() ? "mainnet" : context.profile));
  options.rules = runtime::growth_rules(profile.consensus);
  NS_RETURN_IF_ERROR(plan::validate(options.rules));
  options.boundary_bytes = [](const compute::ModelShape& shape) { return boundary_bytes("int8", shape); };
  options.stop = context.stop;
  options.clock = &context.clock;
  const MonotonicTime begun = context.clock.monotonic_now();
  NS_ASSIGN_OR_RETURN(const sim::PlanScenarioResult result, sim::run_plan_scenario(options));
  const double wall = to_seconds(context.clock.monotonic_now() - begun);
  context.output.json_line(to_json(options, result, wall));
  show(options, result, wall, context.output);
  if (!result.broken.empty()) context.exit_code = ExitCode::Failure;
  return {};
}

}  // namespace neuroshard::app
