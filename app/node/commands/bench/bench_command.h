// neuroshardd bench
#pragma once

namespace CLI {
class App;
}

namespace neuroshard::app {

struct CommandContext;

// Measures this machine and this build; see bench_row.h.
void add_bench_command(CLI::App& root, CommandContext& context);

}  // namespace neuroshard::app
