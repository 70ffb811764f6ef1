#include "core/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/data/detail/dataset_base.h"
#include "core/data/manifest_store.h"
#include "core/data/own_text.h"
#include "core/data/shard_file.h"

namespace neuroshard::data {
namespace detail {

DatasetBase::DatasetBase(storage::FileEnv& env, Manifest manifest, std::shared_ptr<const Tokenizer> tokenizer)
    : env_(env),
      manifest_(std::move(manifest)),
      tokenizer_(std::move(tokenizer)),
      train_(manifest_.of(Split::Train)),
      held_out_(manifest_.of(Split::HeldOut)) {}

Expected<std::vector<std::int32_t>> DatasetBase::read(const ShardEntry& entry, const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(const std::string path, fetch(entry, cancel));
  auto tokens = read_shard(env_, path, entry, tokenizer_->vocab_size());
  if (tokens.ok() || tokens.error().code != ErrorCode::Corrupt) return tokens;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!discarded_.insert(entry.id).second) return tokens;
  }
  if (!discard(entry)) return tokens;
  // The caller chooses the thread that waits for the download: the compute thread has other work.
  return make_error(ErrorCode::Unavailable,
                    fmt::format("shard {} was damaged on the disk; the next try fetches it again", entry.id));
}

Expected<std::shared_ptr<const ShardTokens>> DatasetBase::load(ShardId id, const CancelToken& cancel) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at =
        std::find_if(loaded_.begin(), loaded_.end(), [id](const auto& s) { return s->entry.id == id; });
    if (at != loaded_.end()) {
      std::rotate(loaded_.begin(), at, at + 1);
      return loaded_.front();
    }
  }
  const ShardEntry* entry = manifest_.find(id);
  if (entry == nullptr) {
    return make_error(ErrorCode::NotFound, fmt::format("the manifest lists no shard {}", id));
  }
  auto shard = std::make_shared<ShardTokens>();
  shard->entry = *entry;
  NS_ASSIGN_OR_RETURN(shard->tokens, read(*entry, cancel));
  const std::lock_guard<std::mutex> lock(mutex_);
  discarded_.erase(id);
  loaded_.push_front(shard);
  if (loaded_.size() > max_loaded_shards) loaded_.pop_back();
  return std::shared_ptr<const ShardTokens>(std::move(shard));
}

}  // namespace detail

namespace {

class LocalDataset final : public detail::DatasetBase {
 public:
  LocalDataset(storage::FileEnv& env, std::string directory, Manifest manifest,
               std::shared_ptr<const Tokenizer> tokenizer)
      : DatasetBase(env, std::move(manifest), std::move(tokenizer)), directory_(std::move(directory)) {}

  Expected<void> prefetch(ShardId, const CancelToken&) override { return {}; }

 protected:
  Expected<std::string> fetch(const ShardEntry& entry, const CancelToken&) override {
    if (entry.url.find("://") != std::string::npos) {
      return make_error(ErrorCode::Unsupported,
                        fmt::format("shard {} is at {}, not in {}", entry.id, entry.url, directory_));
    }
    return directory_ + "/" + entry.url;
  }

 private:
  const std::string directory_;
};

}  // namespace

Expected<std::unique_ptr<Dataset>> open_local_dataset(storage::FileEnv& env, const std::string& directory,
                                                      const ManifestTrust& trust) {
  NS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(env, directory, trust));
  NS_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(env, directory, manifest));
  return std::unique_ptr<Dataset>(
      std::make_unique<LocalDataset>(env, directory, std::move(manifest), std::move(tokenizer)));
}

Expected<std::unique_ptr<Dataset>> open_own_text(storage::FileEnv& env, const std::string& directory,
                                                 const ManifestTrust& trust) {
  NS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(env, directory, trust));
  NS_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(env, directory, manifest));
  for (ShardEntry& shard : manifest.shards) shard.id |= first_own_shard;
  return std::unique_ptr<Dataset>(
      std::make_unique<LocalDataset>(env, directory, std::move(manifest), std::move(tokenizer)));
}

}  // namespace neuroshard::data
