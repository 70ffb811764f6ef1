// The wallet of a data directory: finding, opening and replacing D/wallet.keystore.
#pragma once

#include <memory>
#include <string>

#include "app/node/command.h"
#include "core/crypto/keystore.h"
#include "core/platform/file/directory_lock.h"
#include "core/platform/secret/keychain.h"

namespace neuroshard::app {

// How a wallet is to be locked or opened, as the flags say.
struct LockFlags {
  std::string protection;  // empty: passphrase when one is given, else none
  std::string passphrase_file;
};

// NotFound: this data directory has no wallet. Says how to make one.
Error no_wallet(const std::string& directory);

class WalletFile {
 public:
  // References must outlive the object.
  WalletFile(CommandContext& context, platform::Keychain& keychain)
      : context_(context), keychain_(keychain) {}

  std::string path() const { return context_.data_dir + "/wallet.keystore"; }
  // An error: the disk does not say.
  Expected<bool> exists() const { return context_.files.has_name(path()); }
  // Creates the data directory when it is missing and holds its lock as long as the result lives.
  Expected<platform::DirectoryLock> lock_directory() const;
  // NotFound: no_wallet().
  Expected<crypto::Keystore> load() const;

  // Gets passphrase or keychain key as the keystore's protection asks.
  Expected<crypto::WalletSecret> unlock(const crypto::Keystore& keystore,
                                        const std::string& passphrase_file) const;
  // Seals as the flags say and, for the keychain, stores the new key there. Nothing is written to the disk.
  Expected<crypto::Keystore> seal(const crypto::WalletSecret& secret, const LockFlags& flags,
                                  WallTime created) const;
  // Atomic, 0600.
  Expected<void> write(const crypto::Keystore& keystore) const;
  // As write(), in place of `before`; overwrites the former file when it was not protected, and tells the user
  // what the disk may still hold.
  Expected<void> replace(const crypto::Keystore& before, const crypto::Keystore& after) const;
  // Drops the key of a keystore that is no longer used; failing is harmless and silent.
  void forget_key(const crypto::Keystore& keystore) const;

 private:
  CommandContext& context_;
  platform::Keychain& keychain_;
};

// A body for the wallet of the data directory, with the machine's keychain, which costs nothing until it is
// used.
void set_wallet_body(CLI::App& command, CommandContext& context,
                     std::function<Expected<void>(const WalletFile&)> body);

}  // namespace neuroshard::app
