#include "app/node/commands/wallet/nodes_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/chain_replay.h"
#include "app/node/commands/wallet/wallet_file.h"
#include "app/node/output/chain_text.h"

namespace neuroshard::app {
namespace {

Expected<void> show_nodes(CommandContext& context, const WalletFile& file) {
  NS_ASSIGN_OR_RETURN(const crypto::Keystore keystore, file.load());
  NS_ASSIGN_OR_RETURN(const ChainPlace place, chain_place(context));
  ChainReplay replay(place, ChainReplay::Checks::NoSignatures, context);
  NS_RETURN_IF_ERROR(replay.run([](const auto&) { return true; }));
  if (!replay.history()) return make_error(ErrorCode::NotFound, place.log() + " has no block yet");
  nlohmann::ordered_json json = wallet_nodes_json(*replay.history(), keystore.public_key());
  json["wallet_id"] = keystore.wallet_id();
  json["protection"] = std::string(to_string(keystore.protection()));
  context.output.json_line(json);
  for (const std::string& line : wallet_nodes_lines(*replay.history(), keystore.public_key()))
    context.output.line(line);
  return {};
}

}  // namespace

void add_nodes_command(CLI::App& wallet, CommandContext& context) {
  CLI::App& command = add_command(
      wallet, "nodes",
      "List the nodes that work for this wallet, and those that it has revoked, as of the newest block on "
      "this disk.\n\"neuroshardd status\" shows the id of this computer's node.",
      {"neuroshardd wallet nodes", "neuroshardd wallet nodes --json"});
  set_wallet_body(command, context, [&context](const WalletFile& file) { return show_nodes(context, file); });
}

}  // namespace neuroshard::app
