// neuroshardd network create | show
#include <CLI/CLI.hpp>

#include "app/node/command.h"

namespace neuroshard::app {

void add_network_command(CLI::App& root, CommandContext& context) {
  CLI::App& network = add_command(root, "network", "Network profiles: what all nodes of one network share");
  CLI::App& show = add_command(network, "show", "Show a profile", {"neuroshardd network show solo"});
  set_body(show, context, [] { return Expected<void>(); });
}

}  // namespace neuroshard::app
