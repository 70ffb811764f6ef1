#include "core/runtime/wallet_delegation.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/crypto/keystore.h"

namespace neuroshard::runtime {
namespace {

constexpr auto life = std::chrono::hours(24 * 365);
constexpr auto renewed_before = std::chrono::hours(24 * 90);
constexpr auto renewed_while_running = std::chrono::hours(24 * 30);
constexpr auto told_before = std::chrono::hours(24 * 28);

Expected<crypto::Keystore> load_keystore(const RuntimeServices& services,
                                         const config::DataDirectory& directory) {
  NS_ASSIGN_OR_RETURN(
      Bytes bytes, storage::read_file(services.files, directory.keystore_path(), crypto::max_keystore_bytes));
  auto keystore = crypto::Keystore::decode(bytes);
  crypto::wipe(bytes);
  return keystore;
}

Expected<crypto::Delegation> read_kept(const RuntimeServices& services,
                                       const config::DataDirectory& directory,
                                       const crypto::PublicKey& wallet) {
  const std::string path = delegation_path(directory.path());
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services.files, path, crypto::delegation_bytes));
  NS_ASSIGN_OR_RETURN(crypto::Delegation kept, crypto::decode_delegation(bytes));
  NS_RETURN_IF_ERROR(crypto::check_delegation(kept, directory.node_key().public_key(), directory.network_id(),
                                              services.clock.wall_now()));
  if (kept.wallet_key != wallet)
    return make_error(ErrorCode::Denied, "the delegation belongs to a different wallet");
  return kept;
}

// Denied: only a person can open it.
Expected<crypto::KeyPair> open_without_asking(const crypto::Keystore& keystore,
                                              const PassphraseSource& passphrase) {
  const bool given = keystore.protection() == crypto::Protection::Passphrase && passphrase;
  if (keystore.protection() != crypto::Protection::None && !given)
    return make_error(ErrorCode::Denied, "the wallet is protected");
  crypto::Secret words;
  if (given) {
    NS_ASSIGN_OR_RETURN(words, passphrase());
  }
  NS_ASSIGN_OR_RETURN(const crypto::WalletSecret secret, keystore.unlock(words.bytes()));
  return secret.key();
}

// A new delegation of a wallet that opens without a person. Nothing: the log says what to do.
std::optional<crypto::Delegation> renew(const RuntimeServices& services,
                                        const config::DataDirectory& directory,
                                        const crypto::Keystore& keystore, const PassphraseSource& passphrase,
                                        bool has_old) {
  const auto wallet = open_without_asking(keystore, passphrase);
  if (!wallet.ok()) {
    services.logger.warning(
        "swarm",
        fmt::format(
            "{}: {}. Stop the node, run \"neuroshardd wallet delegate\" with its --data-dir once, and "
            "start it again",
            has_old ? "the wallet's delegation to this node expires soon" : "this node announces no wallet",
            wallet.error().message));
    return std::nullopt;
  }
  auto made = sign_delegation(services, directory, *wallet);
  if (!made.ok()) {
    services.logger.warning("swarm", made.error().describe());
    return std::nullopt;
  }
  services.logger.info("swarm", "this node works for the wallet " + keystore.wallet_id());
  return *made;
}

}  // namespace

std::string delegation_path(const std::string& data_directory) {
  return data_directory + "/delegation";
}

Expected<crypto::Delegation> sign_delegation(const RuntimeServices& services,
                                             const config::DataDirectory& directory,
                                             const crypto::KeyPair& wallet) {
  const WallTime now = services.clock.wall_now();
  crypto::Delegation made =
      crypto::delegate(wallet, directory.node_key().public_key(), directory.network_id(), now + life,
                       static_cast<std::uint64_t>(to_unix_ms(now)));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services.files, delegation_path(directory.path()),
                                                crypto::encode_delegation(made)));
  return made;
}

std::optional<crypto::Delegation> find_delegation(const RuntimeServices& services,
                                                  const config::DataDirectory& directory,
                                                  const PassphraseSource& passphrase) {
  const auto keystore = load_keystore(services, directory);
  if (!keystore.ok()) {
    services.logger.warning("swarm", "this node announces no wallet: " + keystore.error().describe());
    return std::nullopt;
  }
  const std::string path = delegation_path(directory.path());
  std::optional<crypto::Delegation> kept;
  if (services.files.exists(path)) {
    auto read = read_kept(services, directory, keystore->public_key());
    if (read.ok())
      kept = *read;
    else
      services.logger.warning("swarm", fmt::format("{} is not used: {}", path, read.error().message));
  }
  if (kept && kept->expires - services.clock.wall_now() > renewed_before) return kept;
  const auto renewed = renew(services, directory, *keystore, passphrase, kept.has_value());
  return renewed ? renewed : kept;
}

bool renewal_is_due(const crypto::Delegation& delegation, WallTime started, WallTime now) {
  return delegation.expires - started > renewed_before && delegation.expires - now <= renewed_while_running;
}

std::string delegation_notice(const crypto::Delegation& delegation, const std::string& data_directory,
                              WallTime now) {
  if (delegation.expires - now > told_before) return {};
  const bool ended = delegation.expires <= now;
  return fmt::format(
      "the wallet's delegation to this node {} on {:%F}; {}. Stop the node, run \"neuroshardd wallet "
      "delegate --data-dir {}\" with the wallet's passphrase at hand, and start it again",
      ended ? "ended" : "ends", std::chrono::floor<std::chrono::seconds>(delegation.expires),
      ended ? "the node works for no wallet now" : "then the node works for no wallet", data_directory);
}

}  // namespace neuroshard::runtime
