// neuroshardd checkpoint: see, check, keep, go back to, copy and share what training saved.
#pragma once

namespace CLI {
class App;
}

namespace neuroshard::app {

struct CommandContext;

void add_checkpoint_command(CLI::App& root, CommandContext& context);

}  // namespace neuroshard::app
