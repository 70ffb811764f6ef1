// A whole program of this folder's commands: makes the machine's clock, randomness, disk and terminal once
// and hands them to the command.
#pragma once

#include <functional>

#include "app/node/command.h"

namespace neuroshard::app {

// Returns the exit code. prepare: may put into the context what else the program has; empty: nothing.
int run_program(int argc, char** argv, const std::function<void(CommandContext&)>& prepare = {});

}  // namespace neuroshard::app
