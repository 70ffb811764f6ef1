// neuroshardd status: what the running core does.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/core_client.h"
#include "app/node/snapshot_text.h"

namespace neuroshard::app {
namespace {

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

// Every change, until Ctrl-C or the core's end. A core that stops is an answer, not an error.
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

Expected<void> status(bool follow, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  if (follow) return watch(*client, context);
  show(*client->node().snapshot(), context);
  return {};
}

}  // namespace

void add_status_command(CLI::App& root, CommandContext& context) {
  auto follow = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(root, "status", "Show what the running node does",
                  {"neuroshardd status", "neuroshardd status --json", "neuroshardd status --watch"});
  command.add_flag("--watch", *follow, "go on with a line for each change, until Ctrl-C");
  set_body(command, context, [follow, &context] { return status(*follow, context); });
}

}  // namespace neuroshard::app
