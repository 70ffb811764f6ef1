// neuroshardd contribute on | off, finish: the one switch of a running core.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/core_client.h"
#include "app/node/snapshot_text.h"

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

Expected<void> finish(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([](node::Node& node) { return node.finish(); }));
  show(*client->node().snapshot(), context);
  return {};
}

}  // namespace

void add_contribute_command(CLI::App& root, CommandContext& context) {
  CLI::App& command = add_command(root, "contribute", "Switch the training of the running node on or off",
                                  {"neuroshardd contribute off", "neuroshardd contribute on"});
  for (const bool on : {true, false}) {
    CLI::App& state = add_command(command, on ? "on" : "off",
                                  on ? "Train; also ends a snooze and takes up what finish ended"
                                     : "Pause without end, with a checkpoint; also after a restart",
                                  {on ? "neuroshardd contribute on" : "neuroshardd contribute off"});
    set_body(state, context, [on, &context] { return contribute(on, context); });
  }
}

void add_finish_command(CLI::App& root, CommandContext& context) {
  CLI::App& command =
      add_command(root, "finish", "Let the running node complete its step, save, free memory and pause",
                  {"neuroshardd finish"});
  set_body(command, context, [&context] { return finish(context); });
}

}  // namespace neuroshard::app
