// The network of a running core as text: JSON for programs, lines for people.
#pragma once

#include "app/node/command.h"
#include "core/node/network_view.h"

namespace neuroshard::app {

// Whether others can dial the node: the findings and the advice.
void show_reachability(const node::NetworkView& view, CommandContext& context);
// The same, then the sources of peers and the connected peers.
void show_network(const node::NetworkView& view, CommandContext& context);

}  // namespace neuroshard::app
