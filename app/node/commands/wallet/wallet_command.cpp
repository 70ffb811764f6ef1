// neuroshardd wallet create | show | backup | restore | protect | delegate | revoke
//
// The wallet is the owner's key (the words). Running and earning require only its public part. Secrets come
// from files, the terminal or standard input. They go to the terminal, standard error or an encrypted file,
// and never to standard output.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/open_directory.h"
#include "app/node/commands/wallet/nodes_command.h"
#include "app/node/commands/wallet/revoke_command.h"
#include "app/node/commands/wallet/wallet_file.h"
#include "app/node/commands/wallet/wallet_secrets.h"
#include "core/crypto/mnemonic.h"
#include "core/runtime/wallet_delegation.h"

namespace neuroshard::app {
namespace {

using crypto::Keystore;
using crypto::Protection;
using crypto::Secret;
using crypto::WalletSecret;

struct WalletFlags {
  LockFlags lock;
  std::string backup_passphrase_file;
  std::string file;  // backup --file, restore --from
  bool words = false;
  bool replace = false;
};

std::string describe_protection(Protection protection) {
  switch (protection) {
    case Protection::None:
      return "not protected (anyone who can read the file can spend; see \"neuroshardd wallet protect "
             "--help\")";
    case Protection::Passphrase: return "passphrase";
    case Protection::Keychain: return "keychain of this desktop";
  }
  return "unknown";
}

void report(CommandContext& context, const WalletFile& file, const Keystore& keystore) {
  const auto created = std::chrono::floor<std::chrono::seconds>(keystore.created());
  const std::string created_text =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(created)));
  Output& output = context.output;
  output.line(fmt::format("wallet      {}", keystore.wallet_id()));
  output.line(fmt::format("public key  {}", to_hex(keystore.public_key())));
  output.line(fmt::format("protection  {}", describe_protection(keystore.protection())));
  output.line(fmt::format("backup      {}", keystore.has_words() ? "12 words" : "token of 64 characters"));
  output.line(fmt::format("created     {}", created_text));
  output.line(fmt::format("file        {}", file.path()));
  output.json_line({{"wallet_id", keystore.wallet_id()},
                    {"public_key", to_hex(keystore.public_key())},
                    {"protection", std::string(to_string(keystore.protection()))},
                    {"protected", keystore.protection() != Protection::None},
                    {"has_words", keystore.has_words()},
                    {"created", created_text},
                    {"file", file.path()}});
}

// Shows the words (or the wallet token). On a terminal, asks for some of the words as confirmation.
void show_and_check(CommandContext& context, const WalletSecret& secret) {
  const Secret text = secret.backup_text();
  if (!secret.has_words()) {
    show_secret(context, "\nThe token of this wallet. Anyone who has it owns the wallet:\n\n  ");
  } else {
    show_secret(
        context,
        "\nThe 12 words of this wallet. Write them on paper: anyone who has them owns the wallet, and "
        "without them or a backup nobody can restore it:\n\n  ");
  }
  show_secret(context, text.text());
  show_secret(context, "\n\n");
  if (!secret.has_words() || !can_ask(context)) return;
  context.output.note("Confirm that you wrote the words down:");
  if (check_words(context, text.text())) {
    context.output.note("Confirmed.");
  } else {
    context.output.note("Not confirmed. \"neuroshardd wallet backup --words\" shows the words again.");
  }
}

Error exists_already(const WalletFile& file) {
  if (const auto kept = file.load(); !kept.ok()) {
    return make_error(
        ErrorCode::AlreadyExists,
        fmt::format("the wallet {} already exists, but can't be read: {}. \"neuroshardd wallet restore "
                    "--replace\" puts the wallet of your words or backup there, and keeps this file under "
                    "another name",
                    file.path(), kept.error().message));
  }
  return make_error(ErrorCode::AlreadyExists,
                    fmt::format("the wallet {} already exists; show it with \"neuroshardd wallet show\", "
                                "choose another --data-dir, or put another wallet in its place with "
                                "\"neuroshardd wallet restore --replace\"",
                                file.path()));
}

Expected<void> create_wallet(CommandContext& context, const WalletFile& file, const WalletFlags& flags) {
  NS_ASSIGN_OR_RETURN(const platform::DirectoryLock lock, file.lock_directory());
  NS_ASSIGN_OR_RETURN(const bool present, file.exists());
  if (present) return exists_already(file);
  const WalletSecret secret = WalletSecret::generate(context.entropy);
  NS_ASSIGN_OR_RETURN(const Keystore keystore, file.seal(secret, flags.lock, context.clock.wall_now()));
  NS_RETURN_IF_ERROR(file.write(keystore));
  report(context, file, keystore);
  show_and_check(context, secret);
  return {};
}

Expected<void> show_wallet(CommandContext& context, const WalletFile& file) {
  NS_ASSIGN_OR_RETURN(const Keystore keystore, file.load());
  report(context, file, keystore);
  return {};
}

// Gets the passphrase of an encrypted backup: from its own file, else from that of the wallet, else from the
// terminal.
Expected<Secret> backup_passphrase(CommandContext& context, const WalletFlags& flags, bool again) {
  const std::string& file =
      flags.backup_passphrase_file.empty() ? flags.lock.passphrase_file : flags.backup_passphrase_file;
  return get_passphrase(context, file, "Passphrase of the backup", again);
}

Expected<void> backup_to_file(CommandContext& context, const WalletFlags& flags, const WalletSecret& secret,
                              WallTime created) {
  if (context.files.exists(flags.file)) {
    return make_error(ErrorCode::AlreadyExists,
                      fmt::format("{} already exists; choose another name", flags.file));
  }
  NS_ASSIGN_OR_RETURN(const Secret passphrase, backup_passphrase(context, flags, true));
  NS_ASSIGN_OR_RETURN(
      const Keystore sealed,
      Keystore::seal(secret, {Protection::Passphrase, passphrase.bytes()}, created, context.entropy));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(context.files, flags.file, sealed.encode().bytes()));
  // A backup that can't be opened is worse than none.
  NS_ASSIGN_OR_RETURN(const Bytes written,
                      storage::read_file(context.files, flags.file, crypto::max_keystore_bytes));
  NS_ASSIGN_OR_RETURN(const Keystore read_back, Keystore::decode(written));
  NS_RETURN_IF_ERROR(read_back.unlock(passphrase.bytes()));
  context.output.line(
      fmt::format("Wrote and verified a backup of wallet {} in {}. It opens only with its passphrase.",
                  sealed.wallet_id(), flags.file));
  context.output.json_line({{"wallet_id", sealed.wallet_id()}, {"file", flags.file}, {"verified", true}});
  return {};
}

Expected<void> back_up_wallet(CommandContext& context, const WalletFile& file, const WalletFlags& flags) {
  if (flags.words && context.json) {
    return make_error(ErrorCode::InvalidArgument,
                      "words are never printed as JSON: remove --json, or use --file");
  }
  NS_ASSIGN_OR_RETURN(const Keystore keystore, file.load());
  NS_ASSIGN_OR_RETURN(const WalletSecret secret, file.unlock(keystore, flags.lock.passphrase_file));
  if (flags.words) {
    show_and_check(context, secret);
    return {};
  }
  return backup_to_file(context, flags, secret, keystore.created());
}

// Reads words, a wallet token or an encrypted backup. The form of the bytes decides which.
Expected<WalletSecret> read_wallet(CommandContext& context, const WalletFlags& flags) {
  Secret input;
  if (flags.file.empty() && can_ask(context)) {
    NS_ASSIGN_OR_RETURN(input, ask_secret(context, "The 12 words, or the token", false));
  } else {
    NS_ASSIGN_OR_RETURN(input, read_secret_file(flags.file.empty() ? "-" : flags.file));
  }
  if (!Keystore::looks_like_one(input.bytes())) return WalletSecret::parse(input.text());
  NS_ASSIGN_OR_RETURN(const Keystore backup, Keystore::decode(input.bytes()));
  if (backup.protection() == Protection::None) return backup.unlock({});
  if (backup.protection() == Protection::Keychain) {
    return make_error(
        ErrorCode::Unsupported,
        "this file requires the keychain of the desktop that created it: use the words or a backup from "
        "\"neuroshardd wallet backup --file\"");
  }
  NS_ASSIGN_OR_RETURN(const Secret passphrase, backup_passphrase(context, flags, false));
  return backup.unlock(passphrase.bytes());
}

Expected<void> copy_wallet(CommandContext& context, const WalletFile& file, const std::string& copy) {
  NS_ASSIGN_OR_RETURN(Bytes read, storage::read_file(context.files, file.path(), crypto::max_keystore_bytes));
  const Secret content = Secret::copy_of(read);
  crypto::wipe(read);
  return storage::write_file_atomic(context.files, copy, content.bytes());
}

// A wallet that nobody may have a backup of is never lost: the old file stays, under another name, unless the
// new one has the same wallet and all of its secret. The words do not follow from the token.
Expected<void> replace_wallet(CommandContext& context, const WalletFile& file, const Keystore& keystore) {
  const auto before = file.load();
  if (before.ok() && before->public_key() == keystore.public_key() &&
      (!before->has_words() || keystore.has_words()))
    return file.replace(*before, keystore);
  const std::string kept = fmt::format("{}.old-{}", file.path(), to_unix_ms(context.clock.wall_now()));
  NS_RETURN_IF_ERROR(before.ok() ? copy_wallet(context, file, kept)
                                 : context.files.rename(file.path(), kept));
  const bool open = before.ok() && before->protection() == Protection::None;
  context.output.note(fmt::format("The previous wallet is kept as {}{}", kept,
                                  open ? ". It is not protected: with a backup of it, remove the file with "
                                         "\"shred -u\""
                                       : ""));
  return before.ok() ? file.replace(*before, keystore) : file.write(keystore);
}

Expected<void> restore_wallet(CommandContext& context, const WalletFile& file, const WalletFlags& flags) {
  NS_ASSIGN_OR_RETURN(const platform::DirectoryLock lock, file.lock_directory());
  NS_ASSIGN_OR_RETURN(const bool present, file.exists());
  if (present && !flags.replace) return exists_already(file);
  NS_ASSIGN_OR_RETURN(const WalletSecret secret, read_wallet(context, flags));
  NS_ASSIGN_OR_RETURN(const Keystore keystore, file.seal(secret, flags.lock, context.clock.wall_now()));
  NS_RETURN_IF_ERROR(present ? replace_wallet(context, file, keystore) : file.write(keystore));
  report(context, file, keystore);
  return {};
}

Expected<void> protect_wallet(CommandContext& context, const WalletFile& file, const WalletFlags& flags,
                              const std::string& old_passphrase_file) {
  NS_ASSIGN_OR_RETURN(const platform::DirectoryLock lock, file.lock_directory());
  NS_ASSIGN_OR_RETURN(const Keystore before, file.load());
  // If only one passphrase is required, --passphrase-file names it.
  const bool only_old =
      old_passphrase_file.empty() && flags.lock.protection != to_string(Protection::Passphrase);
  NS_ASSIGN_OR_RETURN(const WalletSecret secret,
                      file.unlock(before, only_old ? flags.lock.passphrase_file : old_passphrase_file));
  NS_ASSIGN_OR_RETURN(const Keystore after, file.seal(secret, flags.lock, before.created()));
  NS_RETURN_IF_ERROR(file.replace(before, after));
  file.forget_key(before);
  report(context, file, after);
  return {};
}

// Signs a delegation to the node of this directory: a node can't do that itself when its wallet is protected.
Expected<void> delegate_wallet(CommandContext& context, const WalletFile& file,
                               const std::string& passphrase_file) {
  NS_ASSIGN_OR_RETURN(const Keystore keystore, file.load());
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Create));
  const config::DataDirectory& directory = *opened.directory;
  const std::string& network = directory.profile().consensus.name;
  if (network == "solo") {
    return make_error(ErrorCode::InvalidArgument,
                      "the network solo has no peers to announce a wallet to; set another network with "
                      "--profile, in its own "
                      "data directory");
  }
  NS_ASSIGN_OR_RETURN(const WalletSecret secret, file.unlock(keystore, passphrase_file));
  NS_ASSIGN_OR_RETURN(const crypto::Delegation made,
                      runtime::sign_delegation(context.services(), directory, secret.key()));
  const std::string node = to_hex(crypto::node_id(made.node_key));
  const auto expires = std::chrono::system_clock::to_time_t(made.expires);
  context.output.line(fmt::format("Node {}… works for wallet {} in the network {} until {:%Y-%m-%d}.",
                                  node.substr(0, 12), keystore.wallet_id(), network, fmt::gmtime(expires)));
  context.output.json_line({{"wallet_id", keystore.wallet_id()},
                            {"node_id", node},
                            {"network", network},
                            {"expires_ms", to_unix_ms(made.expires)}});
  return {};
}

void add_lock_options(CLI::App& command, LockFlags& lock) {
  command.add_option("--protection", lock.protection,
                     "none, passphrase or keychain (default: passphrase if one is given, else none)");
  command.add_option("--passphrase-file", lock.passphrase_file,
                     fmt::format("file with the passphrase (default: the file named by {}, else ask)",
                                 passphrase_file_variable));
}

void add_create(CLI::App& wallet, CommandContext& context) {
  auto flags = std::make_shared<WalletFlags>();
  CLI::App& create =
      add_command(wallet, "create", "Create a new wallet and show its 12 words once",
                  {"neuroshardd wallet create", "neuroshardd wallet create --protection passphrase",
                   "neuroshardd wallet create --passphrase-file pass.txt --json 2> words.txt"});
  add_lock_options(create, flags->lock);
  set_wallet_body(create, context,
                  [flags, &context](const WalletFile& file) { return create_wallet(context, file, *flags); });
}

void add_show(CLI::App& wallet, CommandContext& context) {
  CLI::App& show = add_command(wallet, "show", "Show the public part of the wallet; requires no passphrase",
                               {"neuroshardd wallet show", "neuroshardd wallet show --json"});
  set_wallet_body(show, context, [&context](const WalletFile& file) { return show_wallet(context, file); });
}

void add_backup(CLI::App& wallet, CommandContext& context) {
  auto flags = std::make_shared<WalletFlags>();
  CLI::App& backup =
      add_command(wallet, "backup", "Show the words again, or write an encrypted backup file",
                  {"neuroshardd wallet backup --words", "neuroshardd wallet backup --file wallet.backup"});
  auto* what = backup.add_option_group("what");
  what->add_flag("--words", flags->words,
                 "show the 12 words (or the token) on the terminal or standard error");
  what->add_option("--file", flags->file, "write an encrypted backup to this new file");
  what->require_option(1);
  backup.add_option("--passphrase-file", flags->lock.passphrase_file,
                    "file that holds the wallet's passphrase");
  backup.add_option("--backup-passphrase-file", flags->backup_passphrase_file,
                    "file with the backup's passphrase (default: the wallet's)");
  set_wallet_body(backup, context, [flags, &context](const WalletFile& file) {
    return back_up_wallet(context, file, *flags);
  });
}

void add_restore(CLI::App& wallet, CommandContext& context) {
  auto flags = std::make_shared<WalletFlags>();
  CLI::App& restore =
      add_command(wallet, "restore", "Restore a wallet from its 12 words, its token or a backup file",
                  {"neuroshardd wallet restore", "neuroshardd wallet restore --from wallet.backup",
                   "neuroshardd wallet restore --from - < words.txt"});
  restore.add_option(
      "--from", flags->file,
      "file with words, a token or an encrypted backup; \"-\" = standard input (default: ask)");
  restore.add_flag("--replace", flags->replace,
                   "replace the existing wallet; keeps the old file if the new one lacks any of it");
  add_lock_options(restore, flags->lock);
  restore.add_option("--backup-passphrase-file", flags->backup_passphrase_file,
                     "file with the backup's passphrase (default: --passphrase-file)");
  set_wallet_body(restore, context, [flags, &context](const WalletFile& file) {
    return restore_wallet(context, file, *flags);
  });
}

void add_protect(CLI::App& wallet, CommandContext& context) {
  auto flags = std::make_shared<WalletFlags>();
  auto old_file = std::make_shared<std::string>();
  CLI::App& protect = add_command(
      wallet, "protect", "Change how the wallet on this machine is protected",
      {"neuroshardd wallet protect --protection passphrase", "neuroshardd wallet protect --protection none"});
  add_lock_options(protect, flags->lock);
  protect.get_option("--protection")->required();
  protect.add_option("--old-passphrase-file", *old_file, "file with the current passphrase");
  set_wallet_body(protect, context, [flags, old_file, &context](const WalletFile& file) {
    return protect_wallet(context, file, *flags, *old_file);
  });
}

void add_delegate(CLI::App& wallet, CommandContext& context) {
  auto passphrase_file = std::make_shared<std::string>();
  CLI::App& delegate = add_command(
      wallet, "delegate",
      "Sign that the node of this data directory works for the wallet, for a year.\nA node does this itself "
      "if its wallet is not protected, or if the passphrase file is named by " +
          std::string(passphrase_file_variable) + ". Requires that the node is stopped.",
      {"neuroshardd wallet delegate --data-dir ~/village --profile village.json"});
  delegate.add_option("--passphrase-file", *passphrase_file, "file that holds the wallet's passphrase");
  set_wallet_body(delegate, context, [passphrase_file, &context](const WalletFile& file) {
    return delegate_wallet(context, file, *passphrase_file);
  });
}

}  // namespace

void add_wallet_command(CLI::App& root, CommandContext& context) {
  CLI::App& wallet = add_command(root, "wallet", "The key that owns what this machine earns");
  add_create(wallet, context);
  add_show(wallet, context);
  add_backup(wallet, context);
  add_restore(wallet, context);
  add_protect(wallet, context);
  add_delegate(wallet, context);
  add_nodes_command(wallet, context);
  add_revoke_command(wallet, context);
}

}  // namespace neuroshard::app
