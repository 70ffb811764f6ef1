#include "app/node/commands/wallet/wallet_file.h"

#include <fmt/format.h>

#include "app/node/commands/open_directory.h"
#include "app/node/commands/wallet/wallet_secrets.h"
#include "core/crypto/keys.h"

namespace neuroshard::app {

using crypto::Keystore;
using crypto::Protection;
using crypto::Secret;
using crypto::WalletSecret;

Error no_wallet(const std::string& directory) {
  return make_error(
      ErrorCode::NotFound,
      fmt::format("no wallet found in {}: create one with \"neuroshardd wallet create\", or restore one with "
                  "\"neuroshardd wallet restore\"",
                  directory));
}

Expected<platform::DirectoryLock> WalletFile::lock_directory() const {
  NS_RETURN_IF_ERROR(context_.files.create_directories(context_.data_dir));
  return platform::DirectoryLock::acquire(context_.data_dir, context_.clock);
}

Expected<Keystore> WalletFile::load() const {
  NS_ASSIGN_OR_RETURN(const bool present, exists());
  if (!present) return no_wallet(context_.data_dir);
  auto bytes = storage::read_file(context_.files, path(), crypto::max_keystore_bytes);
  if (!bytes.ok()) return std::move(bytes).error();
  auto keystore = Keystore::decode(*bytes);
  crypto::wipe(*bytes);
  if (!keystore.ok()) return std::move(keystore).error().with_context(path());
  return keystore;
}

Expected<WalletSecret> WalletFile::unlock(const Keystore& keystore,
                                          const std::string& passphrase_file) const {
  switch (keystore.protection()) {
    case Protection::None: return keystore.unlock({});
    case Protection::Passphrase: {
      NS_ASSIGN_OR_RETURN(const Secret passphrase,
                          get_passphrase(context_, passphrase_file, "Passphrase of the wallet", false));
      return keystore.unlock(passphrase.bytes());
    }
    case Protection::Keychain: {
      NS_ASSIGN_OR_RETURN(Bytes key, keychain_.load(keystore.keychain_item()));
      auto secret = keystore.unlock(key);
      crypto::wipe(key);
      return secret;
    }
  }
  return make_error(ErrorCode::Unsupported, "unknown protection");
}

Expected<Keystore> WalletFile::seal(const WalletSecret& secret, const LockFlags& flags,
                                    WallTime created) const {
  Protection protection =
      passphrase_is_given(flags.passphrase_file) ? Protection::Passphrase : Protection::None;
  if (!flags.protection.empty()) {
    NS_ASSIGN_OR_RETURN(protection, crypto::parse_protection(flags.protection));
  }
  Secret material;
  if (protection == Protection::Passphrase) {
    NS_ASSIGN_OR_RETURN(
        material, get_passphrase(context_, flags.passphrase_file, "New passphrase of the wallet", true));
  } else if (protection == Protection::Keychain) {
    material = Secret(crypto::keychain_key_bytes);
    context_.entropy.fill(material.bytes());
  }
  NS_ASSIGN_OR_RETURN(Keystore keystore,
                      Keystore::seal(secret, {protection, material.bytes()}, created, context_.entropy));
  if (protection == Protection::Keychain) {
    NS_RETURN_IF_ERROR(keychain_.store(keystore.keychain_item(),
                                       fmt::format("NeuroShard wallet {}", keystore.wallet_id()),
                                       material.bytes()));
  }
  return keystore;
}

Expected<void> WalletFile::write(const Keystore& keystore) const {
  const Secret bytes = keystore.encode();
  return storage::write_file_atomic(context_.files, path(), bytes.bytes());
}

Expected<void> WalletFile::replace(const Keystore& before, const Keystore& after) const {
  if (before.protection() != Protection::None) return write(after);
  const Secret bytes = after.encode();
  NS_ASSIGN_OR_RETURN(const Expected<void> overwritten,
                      storage::replace_secret_file(context_.files, path(), bytes.bytes()));
  if (overwritten.ok()) {
    context_.output.note(
        "The former file was not protected and is overwritten. An SSD, a copy-on-write file system (btrfs, "
        "ZFS, "
        "APFS), a snapshot or a backup of this disk may still hold its secret.");
  } else {
    context_.output.note("The former file was not protected and is NOT overwritten: " +
                         overwritten.error().message + ". Its secret may still be on the disk.");
  }
  context_.output.note(
      "If somebody else could read this disk, move to a new wallet: \"neuroshardd wallet create --protection "
      "passphrase --data-dir NEW-FOLDER\" shows new words, \"neuroshardd wallet restore --replace "
      "--protection "
      "passphrase\" puts them here, and \"neuroshardd wallet delegate\" lets this node work for that "
      "wallet.");
  return {};
}

void WalletFile::forget_key(const Keystore& keystore) const {
  if (keystore.protection() != Protection::Keychain) return;
  const auto removed = keychain_.remove(keystore.keychain_item());
  static_cast<void>(removed);
}

void set_wallet_body(CLI::App& command, CommandContext& context,
                     std::function<Expected<void>(const WalletFile&)> body) {
  set_body(command, context, [&context, body = std::move(body)]() -> Expected<void> {
    NS_ASSIGN_OR_RETURN(context.data_dir, data_directory_path(context));
    const auto keychain = platform::make_desktop_keychain();
    return body(WalletFile(context, *keychain));
  });
}

}  // namespace neuroshard::app
