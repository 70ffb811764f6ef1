// neuroshardd checkpoint: lists, verifies, keeps, restores, copies and shares checkpoints.
#pragma once

namespace CLI {
class App;
}

namespace neuroshard::app {

struct CommandContext;

void add_checkpoint_command(CLI::App& root, CommandContext& context);
// Its subcommands that change the data directory: save, restore, undo, pin, unpin, delete, prune, import,
// fetch.
void add_checkpoint_changes(CLI::App& group, CommandContext& context);

}  // namespace neuroshard::app
