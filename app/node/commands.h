// Every subcommand, in the order of --help.
#pragma once

namespace CLI {
class App;
}

namespace neuroshard::app {

struct CommandContext;

void add_all_commands(CLI::App& root, CommandContext& context);

}  // namespace neuroshard::app
