#include "app/node/commands/wallet/revoke_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/consent.h"
#include "app/node/commands/core_client.h"
#include "app/node/commands/wallet/wallet_file.h"
#include "core/chain/rules.h"
#include "core/chain/statements.h"
#include "core/node/member_decisions.h"

namespace neuroshard::app {
namespace {

constexpr Duration longest_wait = std::chrono::minutes(3);

struct RevokeFlags {
  std::string node;
  std::string passphrase_file;
  bool yes = false;
};

// One revocation: what the running node says of it, and what the wallet signs for it.
class Revocation {
 public:
  Revocation(CommandContext& context, CoreClient& client, const std::string& node,
             const crypto::PublicKey& wallet)
      : context_(context), client_(client), node_(node), wallet_(wallet) {}

  Expected<node::RevocationReply> ask(const Bytes& statement = {}) {
    const node::RevocationRequest request{node_, to_hex(wallet_), statement};
    return client_.ask<node::RevocationReply>(
        [&request](node::Node& node, node::Reply<node::RevocationReply> done) {
          return node.decisions().revoke_node(request, std::move(done));
        });
  }
  Expected<void> send(const node::RevocationReply& draft, const crypto::KeyPair& wallet) {
    NS_ASSIGN_OR_RETURN(chain::Statement statement, chain::decode_statement(draft.statement));
    // The answering node may be another machine's.
    const std::string id = to_hex(crypto::node_id(statement.node));
    if (!std::holds_alternative<chain::Revoke>(statement.what) || id.rfind(node_, 0) != 0)
      return make_error(ErrorCode::Corrupt, "the running node answers with another node's revocation");
    NS_ASSIGN_OR_RETURN(const Hash256 network, hash_from_hex(draft.network));
    chain::sign_revocation(statement, wallet, network);
    NS_RETURN_IF_ERROR(ask(chain::encode_statement(statement)));
    return {};
  }
  // Until a block has it, at most `longest_wait`. Signs anew what becomes too old for a block.
  Expected<node::RevocationReply> wait(std::uint64_t signed_at, const crypto::KeyPair& wallet) {
    const MonotonicTime begun = context_.clock.monotonic_now();
    for (std::uint64_t asked_at = signed_at; client_.pause();) {
      if (context_.clock.monotonic_now() - begun >= longest_wait)
        return make_error(
            ErrorCode::Timeout,
            "no block has the revocation yet; it waits for the next one. Run this command again "
            "to see whether it counts");
      if (client_.node().snapshot()->rounds.chain.height <= asked_at) continue;
      NS_ASSIGN_OR_RETURN(node::RevocationReply now, ask());
      if (now.revoked_at > 0) return now;
      asked_at = now.height;
      if (now.height < signed_at + chain::statement_life / 2) continue;
      NS_RETURN_IF_ERROR(send(now, wallet));
      signed_at = now.height;
    }
    return make_error(ErrorCode::Cancelled, "stopped waiting; the revocation is on its way");
  }

 private:
  CommandContext& context_;
  CoreClient& client_;
  const std::string node_;
  const crypto::PublicKey wallet_;
};

std::string question_of(const node::RevocationReply& draft, const std::string& wallet) {
  return fmt::format(
      "Revoke the key of node {}\n"
      "for the wallet {}? From the block that has the revocation on, this key has no vote, and its work\n"
      "does not count. It can never work for this wallet again: the machine needs a new data directory.\n"
      "Revoke it? [y/N] ",
      draft.node, wallet);
}

Expected<void> revoke(const RevokeFlags& flags, CommandContext& context, const WalletFile& file) {
  NS_ASSIGN_OR_RETURN(const crypto::Keystore keystore, file.load());
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  Revocation revocation(context, *client, flags.node, keystore.public_key());
  NS_ASSIGN_OR_RETURN(node::RevocationReply reply, revocation.ask());
  if (reply.revoked_at == 0) {
    if (!flags.yes) NS_RETURN_IF_ERROR(ask_consent(question_of(reply, keystore.wallet_id()), "revoking"));
    NS_ASSIGN_OR_RETURN(const crypto::WalletSecret secret, file.unlock(keystore, flags.passphrase_file));
    const crypto::KeyPair wallet = secret.key();
    NS_ASSIGN_OR_RETURN(reply, revocation.ask());  // blocks may have come since
    if (reply.revoked_at == 0) {
      NS_RETURN_IF_ERROR(revocation.send(reply, wallet));
      context.output.note("The revocation is on its way to the voters; it counts once a block has it.");
      NS_ASSIGN_OR_RETURN(reply, revocation.wait(reply.height, wallet));
    }
  }
  context.output.line(fmt::format(
      "Block {} revokes the key of node {}… for the wallet {}: from the next block on it does not count.",
      reply.revoked_at, reply.node.substr(0, 12), keystore.wallet_id()));
  context.output.json_line(
      {{"node_id", reply.node}, {"wallet_id", keystore.wallet_id()}, {"block", reply.revoked_at}});
  return {};
}

}  // namespace

void add_revoke_command(CLI::App& wallet, CommandContext& context) {
  auto flags = std::make_shared<RevokeFlags>();
  CLI::App& command = add_command(
      wallet, "revoke",
      "Take the wallet's delegation to a node back, for example because its computer or its node.key was "
      "stolen.\nFrom the block that has the revocation on, that key has no vote and its work does not count. "
      "It "
      "never works for this wallet again.\nRequires a running node of the network in this data directory, "
      "and the "
      "wallet. That node can be new: restore the wallet from its words, then join.",
      {"neuroshardd wallet revoke 1a2b3c4d5e6f", "neuroshardd wallet revoke 1a2b3c4d5e6f --yes --json"});
  command
      .add_option(
          "NODE", flags->node,
          "id of the node, or its first 8 or more characters; \"neuroshardd chain show\" lists the members")
      ->required();
  command.add_flag("--yes", flags->yes, "do not ask");
  command.add_option("--passphrase-file", flags->passphrase_file, "file that holds the wallet's passphrase");
  set_wallet_body(command, context,
                  [flags, &context](const WalletFile& file) { return revoke(*flags, context, file); });
}

}  // namespace neuroshard::app
