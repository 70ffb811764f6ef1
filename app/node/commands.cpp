// One declaration and one call per subcommand, in the order of --help; each is defined in <name>_command.cpp.
#include "app/node/commands.h"

namespace neuroshard::app {

void add_bench_command(CLI::App& root, CommandContext& context);
void add_checkpoint_command(CLI::App& root, CommandContext& context);
void add_control_command(CLI::App& root, CommandContext& context);
void add_diagnostics_command(CLI::App& root, CommandContext& context);
void add_eval_command(CLI::App& root, CommandContext& context);
void add_embed_command(CLI::App& root, CommandContext& context);
void add_generate_command(CLI::App& root, CommandContext& context);
void add_genesis_command(CLI::App& root, CommandContext& context);
void add_network_command(CLI::App& root, CommandContext& context);
void add_chain_command(CLI::App& root, CommandContext& context);
void add_audit_command(CLI::App& root, CommandContext& context);
void add_partition_command(CLI::App& root, CommandContext& context);
void add_partition_worker_command(CLI::App& root, CommandContext& context);
void add_plan_command(CLI::App& root, CommandContext& context);
void add_train_command(CLI::App& root, CommandContext& context);
void add_wallet_command(CLI::App& root, CommandContext& context);
void add_tracker_command(CLI::App& root, CommandContext& context);
void add_peers_command(CLI::App& root, CommandContext& context);
void add_dht_command(CLI::App& root, CommandContext& context);
void add_reachability_command(CLI::App& root, CommandContext& context);
void add_run_command(CLI::App& root, CommandContext& context);
void add_settings_command(CLI::App& root, CommandContext& context);
void add_status_command(CLI::App& root, CommandContext& context);
void add_contribute_command(CLI::App& root, CommandContext& context);
void add_snooze_command(CLI::App& root, CommandContext& context);
void add_finish_command(CLI::App& root, CommandContext& context);
void add_stop_command(CLI::App& root, CommandContext& context);
void add_set_command(CLI::App& root, CommandContext& context);
void add_history_command(CLI::App& root, CommandContext& context);
void add_http_command(CLI::App& root, CommandContext& context);
void add_logs_command(CLI::App& root, CommandContext& context);
void add_simulate_command(CLI::App& root, CommandContext& context);
void add_completion_command(CLI::App& root, CommandContext& context);

void add_all_commands(CLI::App& root, CommandContext& context) {
  add_run_command(root, context);
  add_status_command(root, context);
  add_contribute_command(root, context);
  add_snooze_command(root, context);
  add_finish_command(root, context);
  add_stop_command(root, context);
  add_set_command(root, context);
  add_http_command(root, context);
  add_logs_command(root, context);
  add_control_command(root, context);
  add_train_command(root, context);
  add_generate_command(root, context);
  add_embed_command(root, context);
  add_eval_command(root, context);
  add_history_command(root, context);
  add_genesis_command(root, context);
  add_wallet_command(root, context);
  add_network_command(root, context);
  add_chain_command(root, context);
  add_audit_command(root, context);
  add_tracker_command(root, context);
  add_peers_command(root, context);
  add_dht_command(root, context);
  add_reachability_command(root, context);
  add_checkpoint_command(root, context);
  add_partition_command(root, context);
  add_partition_worker_command(root, context);
  add_plan_command(root, context);
  add_simulate_command(root, context);
  add_settings_command(root, context);
  add_diagnostics_command(root, context);
  add_bench_command(root, context);
  add_completion_command(root, context);
}

}  // namespace neuroshard::app
