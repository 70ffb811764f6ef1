// neuroshardd wallet revoke
#pragma once

#include "app/node/command.h"

namespace neuroshard::app {

void add_revoke_command(CLI::App& wallet, CommandContext& context);

}  // namespace neuroshard::app
