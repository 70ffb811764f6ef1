// neuroshardd simulate: nodes that train together, on virtual time. They run the same rounds, codecs and
// rules as real nodes (core/rounds, core/outer).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/commands/simulate/simulate_plans.h"
#include "core/platform/process/process_memory.h"
#include "core/sim/plan_scenario.h"
#include "core/sim/scenario.h"

namespace neuroshard::app {
namespace {

struct SimulateFlags {
  sim::ScenarioOptions options;
  sim::PlanScenarioOptions plan;
  std::optional<std::size_t> nodes;  // none: as the kind of scenario says
  std::string codec = "int8";
  std::string sync = "plain";
  bool list = false;
  std::vector<const CLI::Option*> of_rounds, of_plans;  // flags that only one kind of scenario has
};

double per_node_round(const sim::ScenarioOptions& options, const sim::ScenarioResult& r, std::uint64_t all) {
  return static_cast<double>(all) / static_cast<double>(options.nodes) /
         static_cast<double>(std::max<std::uint64_t>(r.rounds, 1));
}

double peak_mib() {
  return static_cast<double>(platform::process_memory().peak_resident.value_or(0)) / (1 << 20);
}

nlohmann::ordered_json to_json(const sim::ScenarioOptions& options, const sim::ScenarioResult& r,
                               double wall_seconds) {
  nlohmann::ordered_json refused = nlohmann::ordered_json::object();
  for (const auto& [reason, count] : r.refused_by) refused[reason] = count;
  return {{"scenario", options.name},
          {"nodes", options.nodes},
          {"seed", options.seed},
          {"byzantine", r.byzantine},
          {"rounds", r.rounds},
          {"blocks", r.blocks},
          {"first_loss", r.first_loss},
          {"loss", r.last_loss},
          {"losses", r.losses},
          {"delta_cosine", r.delta_cosine},
          {"conflicts", r.conflicts},
          {"counted_twice", r.counted_twice},
          {"hash_agreement_rate", r.hash_agreement_rate},
          {"wrong_anchors", r.wrong_anchors},
          {"contributions", r.contributions},
          {"byzantine_counted", r.byzantine_counted},
          {"rows_carried", r.rows_carried},
          {"provisional", r.provisional},
          {"anchors_fetched", r.anchors_fetched},
          {"evidence", r.evidence},
          {"expelled", r.expelled},
          {"refused", refused},
          {"messages", r.messages},
          {"messages_per_node_round", per_node_round(options, r, r.messages)},
          {"bytes_per_node_round", per_node_round(options, r, r.bytes)},
          {"bytes", r.bytes},
          {"lost", r.lost},
          {"events", r.events},
          {"virtual_seconds", r.virtual_seconds},
          {"waiting_share", r.waiting_share},
          {"wall_seconds", wall_seconds},
          {"peak_mib", peak_mib()},
          {"broken", r.broken}};
}

void show(const sim::ScenarioOptions& options, const sim::ScenarioResult& r, double wall_seconds,
          Output& output) {
  output.line(fmt::format(
      "{}: {} nodes, {} Byzantine nodes, seed {}, {} rounds in {:.0f} virtual seconds ({:.1f} s here)",
      options.name, options.nodes, r.byzantine, options.seed, r.rounds, r.virtual_seconds, wall_seconds));
  output.line(fmt::format("  loss on held-out samples   {:.4f} -> {:.4f}", r.first_loss, r.last_loss));
  output.line(fmt::format("  anchors that agree         {:.0f} %, {} conflicts in {} blocks",
                          100 * r.hash_agreement_rate, r.conflicts, r.blocks));
  output.line(fmt::format(
      "  contributions              {} counted ({} of Byzantine nodes), {} counted twice, cosine {:.2f}",
      r.contributions, r.byzantine_counted, r.counted_twice, r.delta_cosine));
  output.line(fmt::format("  messages                   {} ({:.1f} MB), {} lost", r.messages,
                          static_cast<double>(r.bytes) / 1e6, r.lost));
  output.line(fmt::format("  training waited            {:.1f} % of the time", 100 * r.waiting_share));
  output.line(fmt::format(
      "  of a node in a round       {:.0f} messages, {:.1f} kB; {:.0f} MiB of memory in all",
      per_node_round(options, r, r.messages), per_node_round(options, r, r.bytes) / 1e3, peak_mib()));
  if (r.provisional + r.rows_carried + r.anchors_fetched > 0)
    output.line(fmt::format("  {} nodes trained on alone; {} rows carried, {} anchors fetched", r.provisional,
                            r.rows_carried, r.anchors_fetched));
  if (r.evidence + r.expelled > 0)
    output.line(fmt::format("  evidence                   {} times, {} expelled", r.evidence, r.expelled));
  for (const auto& [reason, count] : r.refused_by)
    output.line(fmt::format("  refused: {:<26} {}", reason, count));
  for (const std::string& broken : r.broken) output.line("  BROKEN: " + broken);
}

// Refuses flags of the other kind of scenario.
Expected<void> check_flags(const SimulateFlags& flags, bool of_plans) {
  for (const CLI::Option* option : of_plans ? flags.of_rounds : flags.of_plans) {
    if (option->count() == 0) continue;
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} has no meaning in the scenario {}: it is for scenarios {}", option->get_name(),
                    flags.options.name, of_plans ? "of rounds" : "whose names begin with plan-"));
  }
  return {};
}

// Both kinds of scenarios have a name, nodes and a seed.
sim::PlanScenarioOptions plan_options(const SimulateFlags& flags) {
  sim::PlanScenarioOptions options = flags.plan;
  options.name = flags.options.name;
  if (flags.nodes) options.nodes = *flags.nodes;
  options.seed = flags.options.seed;
  return options;
}

Expected<void> simulate(const SimulateFlags& flags, CommandContext& context) {
  if (flags.list) {
    for (const auto* list : {&sim::scenarios(), &sim::plan_scenarios()}) {
      for (const sim::ScenarioInfo& s : *list) {
        context.output.json_line({{"scenario", s.name}, {"what", s.what}});
        context.output.line(fmt::format("{:<18} {}", s.name, s.what));
      }
    }
    return {};
  }
  const bool of_plans = flags.options.name.rfind("plan-", 0) == 0;
  NS_RETURN_IF_ERROR(check_flags(flags, of_plans));
  if (of_plans) return simulate_plans(plan_options(flags), context);
  sim::ScenarioOptions options = flags.options;
  if (flags.nodes) options.nodes = *flags.nodes;
  NS_ASSIGN_OR_RETURN(options.codec.codec, outer::codec_from_name(flags.codec));
  const auto sync = rounds::sync_choice(flags.sync);
  if (!sync || sync->parts > 1)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("--sync can't be \"{}\"; it is plain, delayed-1 or fragments=P", flags.sync));
  options.sync = *sync;
  options.stop = context.stop;
  const MonotonicTime begun = context.clock.monotonic_now();
  NS_ASSIGN_OR_RETURN(const sim::ScenarioResult result, sim::run_scenario(options));
  const double wall = to_seconds(context.clock.monotonic_now() - begun);
  context.output.json_line(to_json(options, result, wall));
  show(options, result, wall, context.output);
  if (!result.broken.empty()) context.exit_code = ExitCode::Failure;
  return {};
}

}  // namespace

void add_simulate_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App& command = add_command(
      root, "simulate",
      "Simulate a network that trains together while nodes crash, disconnect or are Byzantine.\nFails if an "
      "invariant does not hold",
      {"neuroshardd simulate --list", "neuroshardd simulate --scenario partition --nodes 8 --seed 3",
       "neuroshardd simulate --scenario alie --nodes 8 --json",
       "neuroshardd simulate --scenario plan-churn --nodes 200 --hours 24"});
  sim::ScenarioOptions& o = flags->options;
  command.add_flag("--list", flags->list, "list the scenarios");
  command.add_option("--scenario", o.name, "name of the scenario")->capture_default_str();
  command.add_option(
      "--nodes", flags->nodes,
      "number of nodes, including Byzantine nodes, 4 to 16,384 (default: 8); plans: 3 to 5,000 (60)");
  command.add_option("--seed", o.seed, "the same seed repeats a run exactly")->capture_default_str();
  flags->of_rounds = {
      command.add_option("--rounds", o.rounds, "outer rounds to train")->capture_default_str(),
      command.add_option("--inner-steps", o.inner_steps, "inner steps of each node per round")
          ->capture_default_str(),
      command.add_option("--codec", flags->codec, "delta codec: fp32, fp16, int8, int4, topk, seed-topk")
          ->capture_default_str(),
      command
          .add_option(
              "--sync", flags->sync,
              "plain: training waits for each round's anchor; delayed-1: training continues meanwhile; "
              "fragments=P: the same, a part of the model per round")
          ->capture_default_str(),
      command.add_option("--loss", o.loss, "additional share of lost messages, 0 to 0.9")
          ->capture_default_str(),
      command.add_option("--byzantine", o.byzantine,
                         "number of Byzantine nodes, in scenarios that have them (default: a quarter)"),
      command.add_flag("--plain-mean", o.plain_mean, "aggregate without any defence, for comparison")};
  sim::PlanScenarioOptions& p = flags->plan;
  flags->of_plans = {
      command.add_option("--hours", p.hours, "plans: hours that the scenario lasts")->capture_default_str(),
      command.add_option("--churn", p.leaving_per_hour, "plans: part of the nodes that leaves in an hour")
          ->capture_default_str(),
      command.add_option("--returning", p.returning, "plans: part of them that comes back")
          ->capture_default_str(),
      command.add_option("--replicas", p.replicas, "plans: owners that each slot should have")
          ->capture_default_str(),
      command.add_flag("--compare", p.compare, "plans: compare with planners that know when nodes leave")};
  set_body(command, context, [flags, &context] { return simulate(*flags, context); });
}

}  // namespace neuroshard::app
