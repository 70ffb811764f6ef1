// A dataset that can be trained on: a signed manifest, its tokenizer, and its shards, from a local directory
// or from a publisher over HTTP with a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/base/span.h"
#include "core/data/manifest.h"
#include "core/data/tokenizer.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// All tokens of one shard, in memory.
struct ShardTokens {
  ShardEntry entry;
  std::vector<std::int32_t> tokens;  // each in [0, vocabulary)
};

// Threads: any.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // By ascending id.
  virtual const std::vector<ShardEntry>& shards(Split split) const = 0;

  // The shard's tokens, with size, hash and every token id checked: Corrupt when they are not what the
  // manifest says. A damaged file of a publisher is removed: Unavailable, and the next load() or prefetch()
  // fetches it anew; Corrupt when that one is wrong, too. The publisher's other failures are Unavailable or
  // Timeout, and so is a full disk. The two newest shards stay in memory, so asking again is cheap. Blocks on
  // disk or download.
  virtual Expected<std::shared_ptr<const ShardTokens>> load(ShardId id, const CancelToken& cancel) = 0;
  // Makes a later load() quick: downloads the shard if it is remote. Meant for an io thread. Success when it
  // is here.
  virtual Expected<void> prefetch(ShardId id, const CancelToken& cancel) = 0;
  // load() needs no download of the shard now. A remote dataset may drop the shard later.
  virtual bool is_here(ShardId) const { return true; }
  // The most bytes of downloaded shards on the disk, in force at once. A local dataset has none.
  virtual Expected<void> limit_cache(std::uint64_t) { return {}; }
  // A short description of trouble with the source; "" for none.
  virtual std::string trouble() const { return {}; }
};

// Opens DIR with manifest.json, manifest.json.sig, tokenizer.json and shards. NotFound when there is no
// manifest.
Expected<std::unique_ptr<Dataset>> open_local_dataset(storage::FileEnv& env, const std::string& directory,
                                                      const ManifestTrust& trust);

}  // namespace neuroshard::data
