// neuroshardd wallet nodes
#pragma once

#include "app/node/command.h"

namespace neuroshard::app {

void add_nodes_command(CLI::App& wallet, CommandContext& context);

}  // namespace neuroshard::app
