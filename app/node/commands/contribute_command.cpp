// neuroshardd contribute [on | off | anyway], finish: the switch of a running core, and the sensors of its
// rules.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/output/duration.h"
#include "app/node/output/snapshot_text.h"

namespace neuroshard::app {
namespace {

void show(const node::Snapshot& view, CommandContext& context) {
  context.output.json_line(snapshot_json(view));
  context.output.line(state_text(view));
}

Expected<void> contribute(bool on, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([on](node::Node& node) { return node.set_contributing(on); }));
  show(*client->node().snapshot(), context);
  return {};
}

// Prints the switch, every reason, and every sensor with the present effect of its rule.
Expected<void> show_rules(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  const auto view = client->node().snapshot();
  context.output.json_line(snapshot_json(*view));
  for (const std::string& line : contribute_lines(*view)) context.output.line(line);
  return {};
}

// "end" applies the rules again. No duration means as long as possible: to the next change of the schedule.
Expected<void> anyway(const std::string& text, CommandContext& context) {
  std::chrono::seconds duration =
      text.empty() ? std::chrono::seconds(std::chrono::hours(24)) : std::chrono::seconds(0);
  if (!text.empty() && text != "end") {
    NS_ASSIGN_OR_RETURN(duration, parse_duration(text, context.clock.wall_now()));
  }
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([duration](node::Node& node) { return node.override_rules(duration); }));
  const auto view = client->node().snapshot();
  context.output.json_line(snapshot_json(*view));
  for (const std::string& line : contribute_lines(*view)) context.output.line(line);
  return {};
}

Expected<void> finish(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([](node::Node& node) { return node.finish(); }));
  show(*client->node().snapshot(), context);
  return {};
}

}  // namespace

void add_contribute_command(CLI::App& root, CommandContext& context) {
  CLI::App& command = add_command(
      root, "contribute", "Show why the running node trains or pauses; switch it on or off",
      {"neuroshardd contribute", "neuroshardd contribute off", "neuroshardd contribute anyway 2h"});
  command.callback([&command, &context] {
    // CLI11 calls this body after that of a subcommand, too.
    if (command.get_subcommands().empty()) context.body = [&context] { return show_rules(context); };
  });
  for (const bool on : {true, false}) {
    CLI::App& state =
        add_command(command, on ? "on" : "off",
                    on ? "Train; also ends a snooze and resumes after finish"
                       : "Save a checkpoint and pause until switched on again, also after a restart",
                    {on ? "neuroshardd contribute on" : "neuroshardd contribute off"});
    set_body(
        state, context, [on, &context] { return contribute(on, context); }, WorksWith::AnyComputer);
  }
  auto duration = std::make_shared<std::string>();
  CLI::App& override_rules = add_command(
      command, "anyway",
      "Train for a while regardless of the rules (battery, schedule, …); your own pause still applies",
      {"neuroshardd contribute anyway 2h", "neuroshardd contribute anyway end"});
  override_rules.add_option(
      "duration", *duration,
      "2h, 90min or tomorrow (default: a day), at most until the next change of the schedule; "
      "end: apply the rules again");
  set_body(
      override_rules, context, [duration, &context] { return anyway(*duration, context); },
      WorksWith::AnyComputer);
}

void add_finish_command(CLI::App& root, CommandContext& context) {
  CLI::App& command = add_command(
      root, "finish",
      "Complete the current step or round, save, free memory and pause; a second finish does not wait",
      {"neuroshardd finish"});
  set_body(
      command, context, [&context] { return finish(context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
