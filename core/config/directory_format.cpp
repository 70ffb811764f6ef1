#include "core/config/detail/directory_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace neuroshard::config::detail {
namespace {

constexpr std::uint64_t max_format_bytes = 32;
constexpr std::uint64_t max_backup_file_bytes =
    64u << 20;  // settings, keys, profile; a larger file is data, not layout
constexpr std::string_view replaced_keystore = "wallet.keystore.old-";
constexpr std::array<std::string_view, 15> known_names{
    "FORMAT",          "lock",     "instance", "settings.toml", "settings.toml.bak", "profile.json",
    "wallet.keystore", "node.key", "state.db", "state.db-wal",  "state.db-shm",      "data",
    "checkpoints",     "logs",     "crash"};

// Temporary files of an interrupted atomic write, wallets that were replaced before the first run, and files
// that desktops leave behind don't make a folder foreign.
bool ours(std::string_view name) {
  if (std::find(known_names.begin(), known_names.end(), name) != known_names.end()) return true;
  return !name.empty() &&
         (name.front() == '.' || name.find(".tmp") != std::string_view::npos || name == "lost+found" ||
          name.substr(0, replaced_keystore.size()) == replaced_keystore);
}

Expected<void> write_format(storage::FileEnv& files, const std::string& directory, std::uint32_t format) {
  return storage::write_file_atomic(files, directory + "/FORMAT", as_bytes(fmt::format("{}\n", format)));
}

Expected<void> start_new(storage::FileEnv& files, const std::string& directory, std::uint32_t current) {
  NS_ASSIGN_OR_RETURN(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    if (ours(entry.name)) continue;
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} is not a data directory: it has no FORMAT file but holds '{}'; choose an empty or "
                    "new folder with --data-dir",
                    directory, entry.name));
  }
  return write_format(files, directory, current);
}

Expected<std::uint32_t> read_format(storage::FileEnv& files, const std::string& directory) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(files, directory + "/FORMAT", max_format_bytes));
  std::string_view text = as_text(bytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  std::uint32_t format = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), format);
  if (failed != std::errc() || end != text.data() + text.size() || format == 0) {
    return make_error(ErrorCode::Corrupt, fmt::format("{}/FORMAT does not contain a number; if the rest of "
                                                      "the folder is intact, write the number of its format "
                                                      "into the file, for a first version \"1\"",
                                                      directory));
  }
  return format;
}

Expected<void> back_up(storage::FileEnv& files, const std::string& directory, std::uint32_t format) {
  const std::string target = fmt::format("{}/backup-format-{}", directory, format);
  NS_RETURN_IF_ERROR(files.create_directories(target));
  NS_ASSIGN_OR_RETURN(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    if (entry.is_directory || entry.name == "lock" || entry.size > max_backup_file_bytes) continue;
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(files, directory + "/" + entry.name, max_backup_file_bytes));
    NS_RETURN_IF_ERROR(storage::write_file_atomic(files, target + "/" + entry.name, bytes));
  }
  return {};
}

}  // namespace

Expected<void> open_format(storage::FileEnv& files, const std::string& directory, std::uint32_t current,
                           Span<const FormatMigration> migrations) {
  NS_ASSIGN_OR_RETURN(const bool present, files.has_name(directory + "/FORMAT"));
  if (!present) return start_new(files, directory, current);
  NS_ASSIGN_OR_RETURN(std::uint32_t format, read_format(files, directory));
  if (format == current) return {};
  if (format > current) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} has format {}, written by a newer neuroshardd; this one reads up to format {}. "
                    "Nothing was changed: update neuroshardd, or use another --data-dir",
                    directory, format, current));
  }
  NS_RETURN_IF_ERROR(back_up(files, directory, format));
  for (; format < current; ++format) {
    const auto step =
        std::find_if(migrations.begin(), migrations.end(),
                     [format](const FormatMigration& migration) { return migration.from == format; });
    if (step == migrations.end()) {
      return make_error(
          ErrorCode::Unsupported,
          fmt::format(
              "{} has format {}, which this neuroshardd can't upgrade; open it once with an older version",
              directory, format));
    }
    NS_RETURN_IF_ERROR(step->run(files, directory));
    NS_RETURN_IF_ERROR(write_format(files, directory, format + 1));
  }
  return {};
}

}  // namespace neuroshard::config::detail
