// neuroshardd status: the state of the running core.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/output/rounds_text.h"
#include "app/node/output/snapshot_text.h"

namespace neuroshard::app {
namespace {

struct StatusFlags {
  bool follow = false, map = false, rounds = false;
};

constexpr Duration look = std::chrono::milliseconds(100);

void show(const node::Snapshot& view, CommandContext& context) {
  context.output.json_line(snapshot_json(view));
  for (const std::string& line : snapshot_lines(view)) context.output.line(line);
}

std::string short_line(const node::Snapshot& view) {
  std::string text = state_text(view);
  if (view.training.smoothed_loss) text += fmt::format("  loss {:.4f}", *view.training.smoothed_loss);
  if (view.training.last_step)
    text += fmt::format("  {:.0f} tokens/s", view.training.last_step->tokens_per_second);
  return text;
}

// Prints every change until Ctrl-C or the core's end. A core that stops is a result, not an error.
Expected<void> watch(CoreClient& client, CommandContext& context) {
  std::uint64_t shown = 0;
  std::string last;
  while (context.output.writable()) {
    const auto view = client.node().snapshot();
    if (view->version != shown) {
      shown = view->version;
      context.output.json_line(snapshot_json(*view));
      if (const std::string line = short_line(*view); line != last) context.output.line(last = line);
    }
    if (client.node().link().state != control::LinkState::Connected) {
      context.output.json_line({{"running", false}});
      context.output.line("the core has stopped");
      return {};
    }
    if (context.stop_signal->wait_for(look)) return {};
  }
  return {};
}

nlohmann::ordered_json replicas_json(const std::optional<std::uint32_t>& replicas) {
  return replicas ? nlohmann::ordered_json(*replicas) : nlohmann::ordered_json();
}

nlohmann::ordered_json map_json(const std::vector<node::SlotEntry>& slots,
                                const std::vector<node::ExpertLoad>& loads) {
  nlohmann::ordered_json json{{"slots", nlohmann::ordered_json::array()},
                              {"experts", nlohmann::ordered_json::array()}};
  for (const node::SlotEntry& slot : slots) {
    json["slots"].push_back({{"name", slot.name},
                             {"kind", slot.kind},
                             {"layer", slot.layer},
                             {"expert", slot.expert},
                             {"parameters", slot.parameters},
                             {"bytes", slot.bytes},
                             {"mine", slot.mine},
                             {"replicas", replicas_json(slot.replicas)}});
  }
  for (const node::ExpertLoad& load : loads) {
    const auto known = [&load](auto value) {
      return load.mine ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    };
    json["experts"].push_back({{"layer", load.layer},
                               {"expert", load.expert},
                               {"share", known(load.share)},
                               {"bias", known(load.bias)},
                               {"mine", load.mine},
                               {"replicas", replicas_json(load.replicas)},
                               {"tokens", known(load.tokens)}});
  }
  return json;
}

// The layer map and the load of the experts: a separate object after the status.
Expected<void> show_map(CoreClient& client, CommandContext& context) {
  using Slots = std::vector<node::SlotEntry>;
  using Loads = std::vector<node::ExpertLoad>;
  NS_ASSIGN_OR_RETURN(const Slots slots, client.ask<Slots>([](node::Node& node, node::Reply<Slots> reply) {
    return node.query_slots(std::move(reply));
  }));
  NS_ASSIGN_OR_RETURN(const Loads loads, client.ask<Loads>([](node::Node& node, node::Reply<Loads> reply) {
    return node.query_experts(std::move(reply));
  }));
  context.output.json_line(map_json(slots, loads));
  for (const node::SlotEntry& slot : slots) {
    const auto load = std::find_if(loads.begin(), loads.end(), [&slot](const node::ExpertLoad& one) {
      return slot.kind == "expert" && one.layer == slot.layer && one.expert == slot.expert;
    });
    context.output.line(
        fmt::format("{:<14} {:<10} {:>12} parameters{}", slot.name, slot.mine ? "held here" : "elsewhere",
                    slot.parameters,
                    load == loads.end() || !load->mine
                        ? ""
                        : fmt::format("  {:5.1f} % of its layer's tokens", 100 * load->share)));
  }
  return {};
}

// The contributors of the last rounds, and the reports of the nodes of the network: a separate object as
// well.
Expected<void> show_rounds(CoreClient& client, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto report, client.ask<node::RoundsReport>(
                                             [](node::Node& node, node::Reply<node::RoundsReport> reply) {
                                               return node.query_rounds(std::move(reply));
                                             }));
  context.output.json_line(rounds_report_json(report));
  for (const std::string& line : rounds_report_lines(report)) context.output.line(line);
  return {};
}

Expected<void> status(const StatusFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  if (flags.follow) return watch(*client, context);
  show(*client->node().snapshot(), context);
  if (flags.map) NS_RETURN_IF_ERROR(show_map(*client, context));
  if (flags.rounds) NS_RETURN_IF_ERROR(show_rounds(*client, context));
  return {};
}

}  // namespace

void add_status_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App& command =
      add_command(root, "status", "Show what the running node does",
                  {"neuroshardd status", "neuroshardd status --json", "neuroshardd status --watch",
                   "neuroshardd status --map", "neuroshardd status --rounds"});
  auto* watching =
      command.add_flag("--watch", flags->follow, "then print a line for each change, until Ctrl-C");
  command
      .add_flag("--map", flags->map,
                "also show the layer map: slots on this node and the load of the experts")
      ->excludes(watching);
  command
      .add_flag(
          "--rounds", flags->rounds,
          "also show the last outer rounds, their contributors and late members, and the report of each node")
      ->excludes(watching);
  set_body(
      command, context, [flags, &context] { return status(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
