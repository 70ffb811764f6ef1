#include "core/data/shard_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/data/detail/json_fields.h"

namespace neuroshard::data {
namespace {

constexpr const char* order_file = "cache.json";
constexpr const char* extension = ".pt";
constexpr std::uint64_t max_order_bytes = 64u << 20;
constexpr std::uint64_t spare_disk_bytes = 64u << 20;  // left for everything else on that disk
// After the name of a shard: files of a download that was interrupted.
constexpr std::array<std::string_view, 3> part_ends = {".part", ".part.etag", ".part.cut"};

std::string name_of(const Hash256& hash) {
  return to_hex(hash) + extension;
}

// Of a whole shard's name.
Hash256 hash_of(const std::string& name) {
  return hash_from_hex(name.substr(0, name.find('.'))).value_or(Hash256{});
}

// A shard, or a part of one.
bool is_cache_file(std::string_view name) {
  for (const std::string_view end : part_ends) {
    if (!name.ends_with(end)) continue;
    name.remove_suffix(end.size());
    break;
  }
  if (!name.ends_with(extension)) return false;
  name.remove_suffix(std::string_view(extension).size());
  return hash_from_hex(name).ok();
}

}  // namespace

Expected<std::unique_ptr<ShardCache>> ShardCache::open(storage::FileEnv& env, const std::string& directory,
                                                       std::uint64_t max_bytes) {
  NS_RETURN_IF_ERROR(env.create_directories(directory));
  std::unique_ptr<ShardCache> cache(new ShardCache(env, directory, max_bytes));
  NS_ASSIGN_OR_RETURN(const auto files, env.list(directory));
  for (const storage::DirectoryEntry& file : files) {
    if (!file.is_directory && is_cache_file(file.name)) cache->entries_[file.name] = {file.size, 0};
  }
  cache->load_order();
  NS_RETURN_IF_ERROR(cache->make_room(0));
  return cache;
}

void ShardCache::load_order() {
  auto bytes = storage::read_file(env_, directory_ + "/" + order_file, max_order_bytes);
  if (!bytes.ok()) return;
  const auto document = detail::parse_object(*bytes, max_order_bytes, order_file);
  if (!document.ok()) return;
  for (const auto& [hash, use] : document->items()) {
    const auto entry = entries_.find(hash + extension);
    if (entry == entries_.end() || !use.is_number_unsigned()) continue;
    entry->second.last_use = use.get<std::uint64_t>();
    uses_ = std::max(uses_, entry->second.last_use);
  }
}

// Losing it only costs the order of eviction.
void ShardCache::store_order() {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [name, entry] : entries_)
    if (name.ends_with(extension)) document[name.substr(0, name.find('.'))] = entry.last_use;
  (void)storage::write_file_atomic(env_, directory_ + "/" + order_file, detail::to_document(document));
}

std::string cached_shard_path(const std::string& directory, const Hash256& hash) {
  return directory + "/" + name_of(hash);
}

std::string ShardCache::path_of(const Hash256& hash) const {
  return cached_shard_path(directory_, hash);
}

bool ShardCache::holds(const Hash256& hash) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.count(name_of(hash)) != 0 && env_.exists(path_of(hash));
}

bool ShardCache::touch(const Hash256& hash) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(name_of(hash));
  if (entry == entries_.end()) return false;
  if (!env_.exists(path_of(hash))) {  // somebody tidied up
    entries_.erase(entry);
    return false;
  }
  entry->second.last_use = ++uses_;
  store_order();
  return true;
}

Expected<void> ShardCache::set_max_bytes(std::uint64_t max_bytes) {
  max_bytes_ = max_bytes;
  return make_room(0);
}

Expected<void> ShardCache::make_room(std::uint64_t bytes, std::uint64_t under_way) {
  std::vector<Hash256> gone;
  auto made = evict(bytes, under_way, &gone);
  if (gone_)
    for (const Hash256& hash : gone) gone_(hash);
  return made;
}

Expected<void> ShardCache::evict(std::uint64_t bytes, std::uint64_t under_way, std::vector<Hash256>* gone) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > max_bytes_) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("a shard of {} bytes does not fit into the cache of {} bytes; allow more disk space",
                    bytes, max_bytes_.load()));
  }
  // With so many bytes given back.
  const auto disk_is_short = [&](std::uint64_t given_back) {
    const auto free = env_.free_bytes(directory_);
    const std::uint64_t wanted = bytes + spare_disk_bytes;
    return bytes > 0 && free.ok() && wanted > given_back && *free < wanted - given_back;
  };
  const auto full = [this] {
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the disk of {} is nearly full; free some space", directory_));
  };
  if (disk_is_short(sum())) return full();
  while (!entries_.empty() && (sum() + under_way + bytes > max_bytes_ || disk_is_short(0))) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    });
    const auto removed = env_.remove_file(directory_ + "/" + oldest->first);
    // Somebody else may have removed it.
    if (!removed.ok() && removed.error().code != ErrorCode::NotFound) return removed.error();
    if (oldest->first.ends_with(extension)) gone->push_back(hash_of(oldest->first));
    entries_.erase(oldest);
  }
  if (disk_is_short(0)) return full();
  return {};
}

void ShardCache::resume(const Hash256& hash) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string_view end : part_ends) entries_.erase(name_of(hash).append(end));
}

void ShardCache::left(const Hash256& hash) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string_view end : part_ends) {
    const std::string name = name_of(hash).append(end);
    if (const auto part = env_.open_read(directory_ + "/" + name); part.ok())
      entries_[name] = {(*part)->size(), 0};
  }
}

void ShardCache::added(const Hash256& hash, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[name_of(hash)] = {bytes, ++uses_};
  store_order();
}

void ShardCache::remove(const Hash256& hash) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.erase(name_of(hash)) == 0) return;
    (void)env_.remove_file(path_of(hash));
  }
  if (gone_) gone_(hash);
}

std::uint64_t ShardCache::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sum();
}

std::uint64_t ShardCache::sum() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry.bytes;
  return bytes;
}

}  // namespace neuroshard::data
