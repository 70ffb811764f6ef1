// Shared by the tests of datasets: folders of text, keys, and a dataset made of plain numbers.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "core/crypto/keys.h"
#include "core/data/dataset.h"
#include "core/data/detail/dataset_base.h"
#include "core/data/manifest_store.h"
#include "core/data/shard_file.h"
#include "tests/support/memory_file_env.h"

namespace neuroshard::data::testing {

inline crypto::KeyPair key_of(std::uint8_t number) {
  Hash256 seed{};
  seed[0] = number;
  return crypto::KeyPair::from_seed(seed);
}

inline Hash256 filled(std::uint8_t value) {
  Hash256 hash;
  hash.fill(value);
  return hash;
}

inline void put_file(storage::FileEnv& env, const std::string& path, const std::string& text) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) NS_CHECK(env.create_directories(path.substr(0, slash)).ok());
  NS_CHECK(storage::write_file_atomic(env, path, as_bytes(std::string_view(text))).ok());
}

// The folder has the shards that its manifest lists, and no others.
inline bool has_listed_shards_only(storage::FileEnv& env, const std::string& directory) {
  const auto manifest = load_manifest(env, directory, {key_of(1).public_key(), {}});
  const auto files = env.list(directory);
  NS_CHECK(manifest.ok() && files.ok());
  std::set<std::string> listed, there;
  for (const ShardEntry& shard : manifest->shards) listed.insert(shard.url);
  for (const storage::DirectoryEntry& file : *files)
    if (is_shard_file_name(file.name)) there.insert(file.name);
  return there == listed;
}

// Lines of made-up words, different for every seed.
inline std::string prose(std::uint64_t seed, std::size_t bytes) {
  static constexpr const char* words[] = {"river",  "stone", "the",   "a",           "light",  "carries",
                                          "under",  "old",   "house", "and",         "winter", "when",
                                          "speaks", "of",    "small", "caf\xc3\xa9", "window"};
  Rng rng(seed);
  std::string text;
  while (text.size() < bytes) {
    text += words[rng.below(std::size(words))];
    text += rng.below(9) == 0 ? ".\n" : " ";
  }
  return text;
}

// Shards of consecutive numbers, in memory.
class NumberDataset : public detail::DatasetBase {
 public:
  NumberDataset(storage::FileEnv& env, Manifest manifest)
      : DatasetBase(env, std::move(manifest), std::make_shared<Tokenizer>()) {}
  Expected<std::shared_ptr<const ShardTokens>> load(ShardId id, const CancelToken&) override {
    ++loads;
    auto shard = std::make_shared<ShardTokens>();
    shard->entry = *manifest().find(id);
    for (std::uint64_t i = 0; i < shard->entry.tokens; ++i) {
      shard->tokens.push_back(static_cast<std::int32_t>((1000 * id + i) % 266));
    }
    return std::shared_ptr<const ShardTokens>(shard);
  }
  Expected<void> prefetch(ShardId id, const CancelToken&) override {
    prefetched.push_back(id);
    return {};
  }
  int loads = 0;
  std::vector<ShardId> prefetched;

 protected:
  Expected<std::string> fetch(const ShardEntry&, const CancelToken&) override { return std::string(); }
};

inline ShardEntry shard_of(ShardId id, std::uint64_t tokens, Split split = Split::Train) {
  ShardEntry entry;
  entry.id = id;
  entry.url = fmt::format("shard_{}.pt", id);
  entry.tokens = tokens;
  entry.size = tokens * 8 + 700;
  entry.sha256[0] = static_cast<std::uint8_t>(id + 1);
  entry.source = "numbers";
  entry.split = split;
  return entry;
}

inline Manifest manifest_of(std::vector<ShardEntry> shards) {
  Manifest manifest;
  manifest.shards = std::move(shards);
  return manifest;
}

}  // namespace neuroshard::data::testing
