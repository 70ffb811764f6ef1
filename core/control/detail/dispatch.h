// Runs a command from the wire on the node.
#pragma once

#include <functional>
#include <string>

#include <proto/control.pb.h>
#include "core/node/node.h"

namespace neuroshard::control::detail {

// The node's id of it, or why it was refused. on_text: what a generate() writes.
Expected<node::CommandId> dispatch(node::Node& node, const v1::CommandRequest& request,
                                   node::TextHandler on_text);

}  // namespace neuroshard::control::detail
