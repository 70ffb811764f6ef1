// neuroshardd network continue
#pragma once

#include "app/node/command.h"

namespace neuroshard::app {

void add_continue_command(CLI::App& network, CommandContext& context);

}  // namespace neuroshard::app
