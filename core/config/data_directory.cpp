#include "core/config/data_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/config/detail/directory_format.h"
#include "core/config/model_size.h"
#include "core/crypto/keystore.h"
#include "core/crypto/node_key.h"
#include "core/crypto/wallet_secret.h"
#include "core/platform/file/directory_lock.h"

namespace neuroshard::config {
namespace {

constexpr std::uint64_t max_instance_bytes = 64;
constexpr std::size_t uuid_characters = 36;

// RFC 4122, version 4.
std::string random_uuid(crypto::Entropy& entropy) {
  std::array<std::uint8_t, 16> bytes{};
  entropy.fill(bytes);
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  const std::string hex = to_hex(bytes);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

bool is_uuid(std::string_view text) {
  if (text.size() != uuid_characters) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

Expected<void> check_free_space(storage::FileEnv& files, const std::string& path) {
  NS_ASSIGN_OR_RETURN(const std::uint64_t free, files.free_bytes(path));
  if (free >= min_free_bytes) return {};
  return make_error(
      ErrorCode::Exhausted,
      fmt::format("only {} MiB are free on the disk of {}; at least {} MiB are required. Free some space, or "
                  "choose another disk with --data-dir",
                  free >> 20, path, min_free_bytes >> 20));
}

}  // namespace

struct DataDirectory::Lock {
  platform::DirectoryLock held;
};

DataDirectory::DataDirectory(DataDirectoryServices services) : services_(services) {}
DataDirectory::~DataDirectory() = default;

Expected<std::unique_ptr<DataDirectory>> DataDirectory::open(const DataDirectoryOptions& options,
                                                             DataDirectoryServices services) {
  if (options.path.empty()) {
    return make_error(ErrorCode::InvalidArgument, "no data directory given; set one with --data-dir");
  }
  std::unique_ptr<DataDirectory> directory(new DataDirectory(services));
  NS_RETURN_IF_ERROR(directory->open_or_create(options));
  NS_RETURN_IF_ERROR(directory->open_profile(options));
  ConsensusPart& consensus = directory->profile_.consensus;
  NS_ASSIGN_OR_RETURN(consensus.size, read_size(directory->path_, services.files, consensus));
  NS_RETURN_IF_ERROR(directory->open_settings(options));
  NS_RETURN_IF_ERROR(directory->open_identity(options));
  return directory;
}

Expected<void> DataDirectory::open_or_create(const DataDirectoryOptions& options) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(options.path, failed);
  path_ = failed ? options.path : absolute.lexically_normal().string();
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  storage::FileEnv& files = services_.files;
  NS_ASSIGN_OR_RETURN(const bool has_format, files.has_name(format_path()));
  created_now_ = !has_format;
  if (created_now_ && !options.create) {
    return make_error(
        ErrorCode::NotFound,
        fmt::format(
            "data directory {} not found; \"neuroshardd train --text FOLDER --data-dir {}\" creates one",
            path_, path_));
  }
  NS_RETURN_IF_ERROR(files.create_directories(path_));
  NS_ASSIGN_OR_RETURN(auto lock,
                      platform::DirectoryLock::acquire(path_, services_.clock, options.lock_patience));
  lock_ = std::make_unique<Lock>(Lock{std::move(lock)});
  (void)files.remove_leftovers(path_, storage::LeftoverScope::Tree);
  if (options.create) NS_RETURN_IF_ERROR(check_free_space(files, path_));
  NS_RETURN_IF_ERROR(detail::open_format(files, path_, data_directory_format, {}));
  if (created_now_) {
    // Best effort: a folder that somebody made beforehand may be readable by others. The files in it are 0600
    // anyway.
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, failed);
  }
  for (const std::string& folder : {data_path(), checkpoints_path(), logs_path(), crash_path()}) {
    if (files.exists(folder)) continue;
    if (!files.exists(format_path())) {
      return make_error(ErrorCode::NotFound,
                        fmt::format("the data directory {} is missing; is its disk connected?", path_));
    }
    NS_RETURN_IF_ERROR(files.create_directories(folder));
  }
  return {};
}

// A wallet and settings are no reason to stay alone.
bool DataDirectory::is_only_set_up() const {
  storage::FileEnv& files = services_.files;
  if (profile_.consensus.name != "solo" || files.exists(path_ + "/chain")) return false;
  for (const std::string& folder : {data_path(), checkpoints_path()}) {
    const auto entries = files.list(folder);
    if (!entries.ok() || !entries->empty()) return false;
  }
  return true;
}

Expected<void> DataDirectory::open_profile(const DataDirectoryOptions& options) {
  std::optional<NetworkProfile> wanted;
  if (!options.profile.empty()) {
    NS_ASSIGN_OR_RETURN(wanted, load_network_profile(services_.files, options.profile));
  }
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(profile_path()));
  if (!present) {
    if (!wanted) {
      NS_ASSIGN_OR_RETURN(wanted, builtin_profile("solo"));
    }
    profile_ = *wanted;
    network_id_ = neuroshard::config::network_id(profile_.consensus);
    return storage::write_file_atomic(services_.files, profile_path(),
                                      as_bytes(format_network_profile(profile_)));
  }
  auto bytes = storage::read_file(services_.files, profile_path(), max_profile_bytes);
  if (!bytes.ok()) return std::move(bytes).error();
  auto own = parse_network_profile(*bytes);
  if (!own.ok()) return std::move(own).error().with_context(profile_path());
  profile_ = std::move(*own);
  network_id_ = neuroshard::config::network_id(profile_.consensus);
  if (!wanted) return {};
  if (const Hash256 id = neuroshard::config::network_id(wanted->consensus); id != network_id_) {
    if (options.joins && is_only_set_up()) {
      profile_ = *wanted;
      network_id_ = id;
      return storage::write_file_atomic(services_.files, profile_path(),
                                        as_bytes(format_network_profile(profile_)));
    }
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format(
            "the data directory {} belongs to the network '{}' ({}…), not to '{}' "
            "({}…); remove --profile to continue with it, or choose another --data-dir for the other network",
            path_, profile_.consensus.name, to_hex(network_id_).substr(0, 12), wanted->consensus.name,
            to_hex(id).substr(0, 12)));
  }
  if (wanted->directory.sequence <= profile_.directory.sequence) return {};
  profile_.directory = wanted->directory;  // newer addresses of the same network
  return storage::write_file_atomic(services_.files, profile_path(),
                                    as_bytes(format_network_profile(profile_)));
}

Expected<void> DataDirectory::open_settings(const DataDirectoryOptions& options) {
  setting_flags_ = options.setting_flags;
  environment_ = options.environment;
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(settings_path()));
  if (present) {
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(services_.files, settings_path(), max_settings_bytes));
    auto file = parse_settings(bytes);
    if (!file.ok()) {
      Error error = std::move(file).error();
      if (services_.files.exists(settings_path() + ".bak")) {
        error.message += "; correct it, or restore the previous version, settings.toml.bak";
      }
      return std::move(error).with_context(settings_path());
    }
    settings_file_ = std::move(*file);
  }
  NS_ASSIGN_OR_RETURN(settings_,
                      Settings::resolve({&profile_, &settings_file_, environment_, setting_flags_}));
  return {};
}

Expected<void> DataDirectory::open_instance() {
  const std::string path = path_ + "/instance";
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(path));
  if (!present) {
    instance_id_ = random_uuid(services_.entropy);
    return storage::write_file_atomic(services_.files, path, as_bytes(instance_id_ + '\n'));
  }
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services_.files, path, max_instance_bytes));
  instance_id_ = std::string(as_text(bytes).substr(0, uuid_characters));
  if (is_uuid(instance_id_)) return {};
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("{} holds no valid instance id; remove the file, and the node creates a new one", path));
}

Expected<void> DataDirectory::open_node_key() {
  const std::string path = node_key_path();
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(path));
  if (!present) {
    node_key_ = crypto::KeyPair::generate(services_.entropy);
    const crypto::Secret file = crypto::encode_node_key(*node_key_);
    return storage::write_file_atomic(services_.files, path, file.bytes());
  }
  NS_ASSIGN_OR_RETURN(Bytes bytes, storage::read_file(services_.files, path, crypto::node_key_file_bytes));
  auto key = crypto::decode_node_key(bytes);
  crypto::wipe(bytes);
  if (!key.ok()) {
    Error error = std::move(key).error();
    error.message += "; restore the file from a backup, or move it away to give this node a new identity";
    return std::move(error).with_context(path);
  }
  node_key_ = std::move(*key);
  return {};
}

Expected<void> DataDirectory::open_wallet(const DataDirectoryOptions& options) {
  const std::string path = keystore_path();
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(path));
  if (present) {
    auto bytes = storage::read_file(services_.files, path, crypto::max_keystore_bytes);
    // Too long for a wallet is damaged, too.
    if (!bytes.ok() && bytes.error().code != ErrorCode::Exhausted) return std::move(bytes).error();
    auto keystore = bytes.ok() ? crypto::Keystore::decode(*bytes) : Expected<crypto::Keystore>(bytes.error());
    if (bytes.ok()) crypto::wipe(*bytes);
    if (!keystore.ok()) {
      Error error = std::move(keystore).error();
      error.message +=
          "; restore the wallet with \"neuroshardd wallet restore --replace\" from its words or a backup";
      return std::move(error).with_context(path);
    }
    wallet_id_ = keystore->wallet_id();
    wallet_protected_ = keystore->protection() != crypto::Protection::None;
    return {};
  }
  const crypto::WalletSecret secret = crypto::WalletSecret::generate(services_.entropy);
  NS_ASSIGN_OR_RETURN(const auto keystore,
                      crypto::Keystore::seal(secret, {}, services_.clock.wall_now(), services_.entropy));
  const crypto::Secret file = keystore.encode();
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services_.files, path, file.bytes()));
  wallet_id_ = keystore.wallet_id();
  if (options.on_new_wallet) options.on_new_wallet(secret.backup_text().text());
  return {};
}

Expected<void> DataDirectory::open_identity(const DataDirectoryOptions& options) {
  NS_RETURN_IF_ERROR(open_instance());
  NS_RETURN_IF_ERROR(open_node_key());
  return open_wallet(options);
}

Expected<void> DataDirectory::store_settings(SettingsFile file) {
  // Resolve and read first: a file that would not open again must not be written.
  NS_ASSIGN_OR_RETURN(Settings settings, Settings::resolve({&profile_, &file, environment_, setting_flags_}));
  const std::string text = format_settings(file);
  if (auto read = parse_settings(as_bytes(text)); !read.ok())
    return std::move(read).error().with_context("the new " + settings_path());
  NS_ASSIGN_OR_RETURN(const bool present, services_.files.has_name(settings_path()));
  if (present) {
    NS_ASSIGN_OR_RETURN(const Bytes old,
                        storage::read_file(services_.files, settings_path(), max_settings_bytes));
    NS_RETURN_IF_ERROR(storage::write_file_atomic(services_.files, settings_path() + ".bak", old));
  }
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services_.files, settings_path(), as_bytes(text)));
  settings_file_ = std::move(file);
  const std::lock_guard lock(settings_mutex_);
  settings_ = std::move(settings);
  return {};
}

Expected<void> DataDirectory::keep_setting(Setting id) {
  SettingsFile file = settings_file_;
  if (std::any_of(file.begin(), file.end(), [id](const auto& entry) { return entry.first == id; })) return {};
  file.emplace_back(id, settings_.value(id));
  return store_settings(std::move(file));
}

Expected<void> DataDirectory::set_setting(Setting id, const SettingValue& value) {
  // As a person would have written it, so that bounds hold here too.
  NS_ASSIGN_OR_RETURN(const SettingValue checked, parse_setting(id, format_setting(id, value)));
  Settings trial = settings_;
  NS_RETURN_IF_ERROR(trial.set(id, checked));
  SettingsFile file = settings_file_;
  const auto entry = std::find_if(file.begin(), file.end(), [id](const auto& e) { return e.first == id; });
  if (entry == file.end()) {
    file.emplace_back(id, checked);
  } else {
    entry->second = checked;
  }
  return store_settings(std::move(file));
}

Expected<void> DataDirectory::clear_setting(Setting id) {
  SettingsFile file = settings_file_;
  std::erase_if(file, [id](const auto& entry) { return entry.first == id; });
  if (file.size() == settings_file_.size()) return {};
  return store_settings(std::move(file));
}

}  // namespace neuroshard::config
