#include "app/node/wallet_delegation.h"

#include <fmt/format.h>

#include "app/node/wallet_secrets.h"
#include "core/crypto/keystore.h"

namespace neuroshard::app {
namespace {

constexpr auto life = std::chrono::hours(24 * 365);
constexpr auto renewed_before = std::chrono::hours(24 * 90);

Expected<crypto::Keystore> load_keystore(CommandContext& context, const config::DataDirectory& directory) {
  NS_ASSIGN_OR_RETURN(
      Bytes bytes, storage::read_file(context.files, directory.keystore_path(), crypto::max_keystore_bytes));
  auto keystore = crypto::Keystore::decode(bytes);
  crypto::wipe(bytes);
  return keystore;
}

Expected<crypto::Delegation> read_kept(CommandContext& context, const config::DataDirectory& directory,
                                       const crypto::PublicKey& wallet) {
  const std::string path = delegation_path(directory.path());
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(context.files, path, crypto::delegation_bytes));
  NS_ASSIGN_OR_RETURN(crypto::Delegation kept, crypto::decode_delegation(bytes));
  NS_RETURN_IF_ERROR(crypto::check_delegation(kept, directory.node_key().public_key(), directory.network_id(),
                                              context.clock.wall_now()));
  if (kept.wallet_key != wallet)
    return make_error(ErrorCode::Denied, "the delegation belongs to a different wallet");
  return kept;
}

// Denied: only a person can open it.
Expected<crypto::KeyPair> open_unasked(CommandContext& context, const crypto::Keystore& keystore) {
  const bool given = keystore.protection() == crypto::Protection::Passphrase && passphrase_is_given({});
  if (keystore.protection() != crypto::Protection::None && !given)
    return make_error(ErrorCode::Denied, "the wallet is protected");
  crypto::Secret passphrase;
  if (given) {
    NS_ASSIGN_OR_RETURN(passphrase, get_passphrase(context, {}, "Passphrase of the wallet", false));
  }
  NS_ASSIGN_OR_RETURN(const crypto::WalletSecret secret, keystore.unlock(passphrase.bytes()));
  return secret.key();
}

}  // namespace

std::string delegation_path(const std::string& data_directory) {
  return data_directory + "/delegation";
}

Expected<crypto::Delegation> sign_delegation(CommandContext& context, const config::DataDirectory& directory,
                                             const crypto::KeyPair& wallet) {
  const WallTime now = context.clock.wall_now();
  crypto::Delegation made =
      crypto::delegate(wallet, directory.node_key().public_key(), directory.network_id(), now + life,
                       static_cast<std::uint64_t>(to_unix_ms(now)));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(context.files, delegation_path(directory.path()),
                                                crypto::encode_delegation(made)));
  return made;
}

std::optional<crypto::Delegation> find_delegation(CommandContext& context,
                                                  const config::DataDirectory& directory, Logger& logger) {
  const auto keystore = load_keystore(context, directory);
  if (!keystore.ok()) {
    logger.warning("swarm", "this node announces no wallet: " + keystore.error().describe());
    return std::nullopt;
  }
  std::optional<crypto::Delegation> kept;
  if (context.files.exists(delegation_path(directory.path()))) {
    auto read = read_kept(context, directory, keystore->public_key());
    if (read.ok())
      kept = *read;
    else
      logger.warning("swarm", fmt::format("{} is not used: {}", delegation_path(directory.path()),
                                          read.error().message));
  }
  if (kept && kept->expires - context.clock.wall_now() > renewed_before) return kept;
  const auto wallet = open_unasked(context, *keystore);
  if (wallet.ok()) {
    auto made = sign_delegation(context, directory, *wallet);
    if (made.ok()) {
      logger.info("swarm", "this node works for the wallet " + keystore->wallet_id());
      return *made;
    }
    logger.warning("swarm", made.error().describe());
  } else {
    logger.warning(
        "swarm",
        fmt::format(
            "{}: {}. Stop the node, run \"neuroshardd wallet delegate\" with its --data-dir once, and "
            "start it again",
            kept ? "the delegation of this node expires soon" : "this node announces no wallet",
            wallet.error().message));
  }
  return kept;
}

}  // namespace neuroshard::app
