// The network as a running core tells it, for people and programs.
#pragma once

#include "app/node/command.h"
#include "core/node/network_view.h"

namespace neuroshard::app {

// Whether others reach it: what was found and what to do.
void show_reachability(const node::NetworkView& view, CommandContext& context);
// The same, then where it looks for peers, and with whom it talks.
void show_network(const node::NetworkView& view, CommandContext& context);

}  // namespace neuroshard::app
