// neuroshardd snooze: a pause with an end.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/output/duration.h"
#include "app/node/output/snapshot_text.h"

namespace neuroshard::app {
namespace {

Expected<void> snooze(const std::string& text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::chrono::seconds duration, parse_duration(text, context.clock.wall_now()));
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([duration](node::Node& node) { return node.snooze(duration); }));
  const auto view = client->node().snapshot();
  context.output.json_line(snapshot_json(*view));
  context.output.line(state_text(*view));
  return {};
}

}  // namespace

void add_snooze_command(CLI::App& root, CommandContext& context) {
  auto duration = std::make_shared<std::string>();
  CLI::App& command = add_command(root, "snooze", "Pause the running node for a while",
                                  {"neuroshardd snooze 15min", "neuroshardd snooze tomorrow"});
  command
      .add_option("duration", *duration, "15min, 1h, 4h, tomorrow (until 6:00), or any number of s, min, h")
      ->required();
  set_body(
      command, context, [duration, &context] { return snooze(*duration, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
