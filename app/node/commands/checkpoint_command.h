// neuroshardd checkpoint: see, check, keep, go back to, copy and share what training saved.
#pragma once

namespace CLI {
class App;
}

namespace neuroshard::app {

struct CommandContext;

void add_checkpoint_command(CLI::App& root, CommandContext& context);
// Its subcommands that change something: save, restore, undo, pin, unpin, delete, prune, import, fetch.
void add_checkpoint_changes(CLI::App& group, CommandContext& context);

}  // namespace neuroshard::app
