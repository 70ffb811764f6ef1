// neuroshardd stop: ends the running core cleanly.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"

namespace neuroshard::app {
namespace {

constexpr Duration look = std::chrono::milliseconds(50);
constexpr int looks = 300;         // the process ends well within 15 s of the final checkpoint
constexpr int final_looks = 6000;  // of one that writes its final checkpoint already: five minutes

// Of a node whose end somebody else asked for, who alone got the error of its final checkpoint.
Expected<void> saved_all(const node::Snapshot& view) {
  for (const node::Alert& alert : view.alerts)
    if (alert.key == "checkpoint" && alert.severity == node::Severity::Critical)
      return make_error(ErrorCode::Io, "the node has stopped without its final checkpoint: " + alert.message);
  return {};
}

Expected<void> stop(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  context.output.note("waiting for the final checkpoint…");
  const auto asked = client->command([](node::Node& node) { return node.request_shutdown(); });
  // The node ends already, to start anew or for somebody else: now it ends for good.
  const bool ends_already =
      !asked.ok() && asked.error().code == ErrorCode::Cancelled && !context.stop.cancelled();
  if (!asked.ok() && !ends_already) return asked;
  if (ends_already && client->process().pid == 0)
    return make_error(ErrorCode::Busy, "the node ends already; it does not start again");
  auto view = client->node().snapshot();
  // The directory is free when the process has ended, so that the next command may start a new one.
  bool ended = false;
  for (int i = 0; i < (ends_already ? final_looks : looks); ++i) {
    if (ends_already) view = client->node().snapshot();  // the final checkpoint may come only now
    ended = !platform::may_live(client->process());
    if (ended || context.stop_signal->wait_for(look)) break;
  }
  if (ends_already && !ended) {
    if (context.stop.cancelled())
      return make_error(ErrorCode::Cancelled,
                        "stopped waiting; the node still ends and does not start again");
    return make_error(ErrorCode::Timeout, "the node still ends; it does not start again");
  }
  if (ends_already) NS_RETURN_IF_ERROR(saved_all(*view));
  context.output.json_line(
      {{"stopped", true}, {"step", view->training.step}, {"checkpoint", view->checkpoint.newest}});
  context.output.line(fmt::format("Stopped after step {}; everything is saved.", view->training.step));
  return {};
}

}  // namespace

void add_stop_command(CLI::App& root, CommandContext& context) {
  CLI::App& command = add_command(root, "stop", "Stop the running node with a final checkpoint",
                                  {"neuroshardd stop", "neuroshardd stop --data-dir /srv/neuroshard"});
  set_body(
      command, context, [&context] { return stop(context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
