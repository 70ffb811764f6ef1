// A program with the commands of this folder. It makes the machine's clock, randomness, files and terminal
// once and lends them to the command.
#pragma once

#include <functional>

#include "app/node/command.h"

namespace neuroshard::app {

// Returns the exit code. prepare: changes the context before the command line is parsed; may be empty.
int run_program(int argc, char** argv, const std::function<void(CommandContext&)>& prepare = {});

}  // namespace neuroshard::app
