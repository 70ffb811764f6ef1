// The data directory D (0700): everything that a node keeps.
//   FORMAT · lock · instance · settings.toml · profile.json · wallet.keystore · node.key · state.db · data/
//   part · size · checkpoints/ · logs/ · crash/
// An empty or missing directory gets what it needs without questions. One process owns a directory at a time,
// by an OS lock held for the life of this object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/config/network_profile.h"
#include "core/config/settings.h"
#include "core/crypto/entropy.h"
#include "core/crypto/keys.h"
#include "core/storage/file_env.h"

namespace neuroshard::config {

// Of the layout above. Raised when an older program could not read what a newer one writes; then a migration
// is added.
inline constexpr std::uint32_t data_directory_format = 1;
// Below this much free space nothing is started; a checkpoint could not be written anyway.
inline constexpr std::uint64_t min_free_bytes = 64u << 20;

struct DataDirectoryOptions {
  std::string path;
  std::string
      profile;  // --profile: a built-in name or a file; empty = the directory's own, or "solo" for a new one
  // With a profile: a directory that was only set up (in "solo", with no text and nothing trained) changes to that network,
  // with its wallet and settings.
  bool joins = false;
  // A command may have the directory for a moment; a process that is to stay waits so long for it.
  Duration lock_patience{};
  bool create = true;  // false: NotFound when there is no data directory (commands that only read)
  std::vector<std::pair<Setting, std::string>> setting_flags;
  std::optional<std::string> (*environment)(const std::string& name) = process_environment;
  // Called once with the words of a wallet that was just made, so that they can be shown and then forgotten.
  std::function<void(std::string_view words)> on_new_wallet;
};

// Services that an open needs; all outlive the directory.
struct DataDirectoryServices {
  storage::FileEnv& files;
  crypto::Entropy& entropy;
  const Clock& clock;
  Logger& logger;
};

// Threads: one, except const members.
class DataDirectory {
 public:
  // Locks, checks FORMAT, creates what is missing, reads profile, settings and node key.
  // Errors: Busy (names the pid and the remedy), NotFound (create = false), Unsupported (newer FORMAT),
  // Denied (not ours, read-only), Exhausted (disk full), InvalidArgument (another profile than the
  // directory's, a wrong setting), Corrupt (names the file and the remedy).
  static Expected<std::unique_ptr<DataDirectory>> open(const DataDirectoryOptions& options,
                                                       DataDirectoryServices services);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }
  // With the size that the model had at the open (model_size.h).
  const NetworkProfile& profile() const { return profile_; }
  const Hash256& network_id() const { return network_id_; }
  // A copy: another thread may change them meanwhile (set_setting).  Threads: any.
  Settings settings() const {
    const std::lock_guard lock(settings_mutex_);
    return settings_;
  }
  const crypto::KeyPair& node_key() const { return *node_key_; }
  const std::string& instance_id() const { return instance_id_; }  // random UUID of this directory
  const std::string& wallet_id() const { return wallet_id_; }  // for display; empty when there is no wallet
  bool wallet_protected() const { return wallet_protected_; }
  bool created_now() const { return created_now_; }

  // Tells the directory from the empty place of its disk, when that was taken away.
  std::string format_path() const { return path_ + "/FORMAT"; }
  std::string settings_path() const { return path_ + "/settings.toml"; }
  std::string profile_path() const { return path_ + "/profile.json"; }
  std::string keystore_path() const { return path_ + "/wallet.keystore"; }
  std::string node_key_path() const { return path_ + "/node.key"; }
  std::string state_database_path() const { return path_ + "/state.db"; }
  std::string data_path() const { return path_ + "/data"; }
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  std::string logs_path() const { return path_ + "/logs"; }
  std::string crash_path() const { return path_ + "/crash"; }

  // Validates, writes settings.toml (atomic, the old one kept as settings.toml.bak), then takes effect here.
  Expected<void> set_setting(Setting id, const SettingValue& value);
  // Back to the default.
  Expected<void> clear_setting(Setting id);
  // Writes the present value into settings.toml, unless that has one, so that later starts need no flag for it.
  Expected<void> keep_setting(Setting id);

 private:
  struct Lock;
  explicit DataDirectory(DataDirectoryServices services);
  Expected<void> open_or_create(const DataDirectoryOptions& options);
  Expected<void> open_profile(const DataDirectoryOptions& options);
  bool is_only_set_up() const;
  Expected<void> open_settings(const DataDirectoryOptions& options);
  Expected<void> open_identity(const DataDirectoryOptions& options);
  Expected<void> open_instance();
  Expected<void> open_node_key();
  Expected<void> open_wallet(const DataDirectoryOptions& options);
  Expected<void> store_settings(SettingsFile file);

  DataDirectoryServices services_;
  std::string path_;
  std::unique_ptr<Lock> lock_;
  NetworkProfile profile_;
  Hash256 network_id_{};
  SettingsFile settings_file_;
  std::vector<std::pair<Setting, std::string>> setting_flags_;
  std::optional<std::string> (*environment_)(const std::string&) = nullptr;
  mutable std::mutex settings_mutex_;
  Settings settings_;
  std::optional<crypto::KeyPair> node_key_;
  std::string instance_id_;
  std::string wallet_id_;
  bool wallet_protected_ = false;
  bool created_now_ = false;
};

}  // namespace neuroshard::config
