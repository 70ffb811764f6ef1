// One declaration and one call per subcommand, in the order of --help; each is defined in <name>_command.cpp.
#include "app/node/commands.h"

namespace neuroshard::app {

void add_bench_command(CLI::App& root, CommandContext& context);
void add_checkpoint_command(CLI::App& root, CommandContext& context);
void add_generate_command(CLI::App& root, CommandContext& context);
void add_genesis_command(CLI::App& root, CommandContext& context);
void add_network_command(CLI::App& root, CommandContext& context);
void add_train_command(CLI::App& root, CommandContext& context);
void add_wallet_command(CLI::App& root, CommandContext& context);
void add_run_command(CLI::App& root, CommandContext& context);
void add_settings_command(CLI::App& root, CommandContext& context);

void add_all_commands(CLI::App& root, CommandContext& context) {
  add_run_command(root, context);
  add_train_command(root, context);
  add_generate_command(root, context);
  add_genesis_command(root, context);
  add_wallet_command(root, context);
  add_network_command(root, context);
  add_checkpoint_command(root, context);
  add_settings_command(root, context);
  add_bench_command(root, context);
}

}  // namespace neuroshard::app
