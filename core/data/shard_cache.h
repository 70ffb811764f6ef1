// Downloaded shards on disk, named by their hash, under a cap: the least recently used go first. Parts of
// interrupted downloads count, too, as files that nobody uses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// The file of a cached shard.
std::string cached_shard_path(const std::string& directory, const Hash256& hash);

// Threads: any. One cache per directory at a time.
class ShardCache {
 public:
  // Creates the directory and takes over the files in it. The order of use is kept in "cache.json"; lost or
  // damaged, shards count as unused and nothing else happens.
  static Expected<std::unique_ptr<ShardCache>> open(storage::FileEnv& env, const std::string& directory,
                                                    std::uint64_t max_bytes);

  // Called with each shard that is evicted or removed from now on, on the thread of the call that does it.
  void set_gone(std::function<void(const Hash256&)> gone) { gone_ = std::move(gone); }
  std::string path_of(const Hash256& hash) const;
  bool holds(const Hash256& hash) const;  // and its file is there
  // True, and most recently used, when the shard is here.
  bool touch(const Hash256& hash);
  // Evicts down to the new cap.
  Expected<void> set_max_bytes(std::uint64_t max_bytes);
  // Evicts until `bytes` more fit, beside those of downloads under way. Exhausted when they never can: the cap
  // is below one shard, or the disk is so full that all of the cache would not make the room; nothing is evicted
  // then.
  Expected<void> make_room(std::uint64_t bytes, std::uint64_t under_way = 0);
  // A download to path_of(hash) begins: what an earlier one left belongs to it, and is not evicted.
  void resume(const Hash256& hash);
  // It broke off: what it has left counts again.
  void left(const Hash256& hash);
  // The file at path_of(hash) is complete.
  void added(const Hash256& hash, std::uint64_t bytes);
  void remove(const Hash256& hash);
  std::uint64_t used_bytes() const;

 private:
  struct Entry {
    std::uint64_t bytes = 0;
    std::uint64_t last_use = 0;
  };
  ShardCache(storage::FileEnv& env, std::string directory, std::uint64_t max_bytes)
      : env_(env), directory_(std::move(directory)), max_bytes_(max_bytes) {}
  Expected<void> evict(std::uint64_t bytes, std::uint64_t under_way, std::vector<Hash256>* gone);
  std::uint64_t sum() const;
  void load_order();
  void store_order();

  storage::FileEnv& env_;
  const std::string directory_;
  std::atomic<std::uint64_t> max_bytes_;
  std::function<void(const Hash256&)> gone_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by the file's name
  std::uint64_t uses_ = 0;
};

}  // namespace neuroshard::data
