#include "core/data/remote_dataset.h"

#include <fmt/format.h>

#include <mutex>

#include "core/data/detail/dataset_base.h"
#include "core/data/manifest_store.h"
#include "core/data/shard_cache.h"

namespace neuroshard::data {
namespace {

constexpr std::uint64_t max_signature_bytes = 4096;
constexpr const char* category = "data";

class RemoteDataset final : public detail::DatasetBase {
 public:
  RemoteDataset(storage::FileEnv& env, const Clock& clock, const RemoteDatasetOptions& options,
                Manifest manifest, std::shared_ptr<const Tokenizer> tokenizer,
                std::unique_ptr<ShardCache> cache)
      : DatasetBase(env, std::move(manifest), std::move(tokenizer)),
        options_(options),
        cache_(std::move(cache)),
        downloader_(env, clock, static_cast<std::uint64_t>(to_unix_ms(clock.wall_now()))) {}

  Expected<void> prefetch(ShardId id, const CancelToken& cancel) override {
    const ShardEntry* entry = manifest().find(id);
    if (entry == nullptr)
      return make_error(ErrorCode::NotFound, fmt::format("the manifest lists no shard {}", id));
    NS_ASSIGN_OR_RETURN(const std::string path, fetch(*entry, cancel));
    return {};
  }

 protected:
  // One download at a time: a load that needs the shard being fetched ahead waits for it instead of fetching
  // it twice.
  Expected<std::string> fetch(const ShardEntry& entry, const CancelToken& cancel) override {
    const std::lock_guard<std::mutex> lock(download_);
    std::string path = cache_->path_of(entry.sha256);
    if (cache_->touch(entry.sha256)) return path;
    NS_RETURN_IF_ERROR(cache_->make_room(entry.size));
    DownloadRequest request;
    request.url = resolve_url(options_.manifest_url, entry.url);
    request.path = path;
    request.max_bytes = entry.size;
    request.size = entry.size;
    request.sha256 = entry.sha256;
    auto fetched = downloader_.fetch(request, options_.download, cancel);
    if (!fetched.ok())
      return std::move(fetched).error().with_context(fmt::format("downloading shard {}", entry.id));
    cache_->added(entry.sha256, entry.size);
    return path;
  }
  void discard(const ShardEntry& entry) override { cache_->remove(entry.sha256); }

 private:
  const RemoteDatasetOptions options_;
  const std::unique_ptr<ShardCache> cache_;
  Downloader downloader_;
  std::mutex download_;
};

// Manifest, signature and tokenizer, fetched into the cache directory.
class Opening {
 public:
  Opening(storage::FileEnv& env, const Clock& clock, const RemoteDatasetOptions& options,
          const CancelToken& cancel)
      : env_(env),
        options_(options),
        cancel_(cancel),
        directory_(options.cache_directory),
        downloader_(env, clock, static_cast<std::uint64_t>(to_unix_ms(clock.wall_now()))) {}

  // Into "incoming/" first, so that a bad answer never replaces what is here.
  Expected<Manifest> update() {
    const std::string incoming = directory_ + "/incoming";
    NS_RETURN_IF_ERROR(env_.remove_tree(incoming));
    NS_RETURN_IF_ERROR(env_.create_directories(incoming));
    NS_RETURN_IF_ERROR(get(manifest_file_name, incoming, max_manifest_bytes, {}));
    NS_RETURN_IF_ERROR(get(manifest_signature_file_name, incoming, max_signature_bytes, {}));
    NS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(env_, incoming, options_.trust));
    NS_RETURN_IF_ERROR(refuse_older(manifest));
    if (!load_tokenizer(env_, directory_, manifest).ok()) {
      NS_RETURN_IF_ERROR(
          get(tokenizer_file_name, incoming, max_tokenizer_file_bytes, manifest.tokenizer_hash));
      NS_ASSIGN_OR_RETURN(const auto received, load_tokenizer(env_, incoming, manifest));
      NS_RETURN_IF_ERROR(check_continues(*received));
      NS_RETURN_IF_ERROR(move(incoming, tokenizer_file_name));
    }
    // In the order of manifest_store.h, so that a stop in between leaves the old or the new manifest.
    const std::string pending = std::string(manifest_file_name) + ".new";
    NS_RETURN_IF_ERROR(env_.rename(incoming + "/" + manifest_file_name, directory_ + "/" + pending));
    NS_RETURN_IF_ERROR(move(incoming, manifest_signature_file_name));
    NS_RETURN_IF_ERROR(env_.rename(directory_ + "/" + pending, directory_ + "/" + manifest_file_name));
    NS_RETURN_IF_ERROR(env_.sync_directory(directory_));
    return manifest;
  }

 private:
  Expected<void> get(const std::string& name, const std::string& folder, std::uint64_t max_bytes,
                     const std::optional<Hash256>& hash) {
    DownloadRequest request;
    request.url = name == manifest_file_name             ? options_.manifest_url
                  : name == manifest_signature_file_name ? options_.manifest_url + ".sig"
                                                         : resolve_url(options_.manifest_url, name);
    request.path = folder + "/" + name;
    request.max_bytes = max_bytes;
    request.sha256 = hash;
    auto fetched = downloader_.fetch(request, options_.download, cancel_);
    if (!fetched.ok()) return std::move(fetched).error();
    return {};
  }

  Expected<void> move(const std::string& from, const char* name) {
    return env_.rename(from + "/" + name, directory_ + "/" + name);
  }

  // A signed manifest of yesterday is still signed: somebody in between must not take data away with it.
  Expected<void> refuse_older(const Manifest& received) const {
    const auto held = load_manifest(env_, directory_, options_.trust);
    if (held.ok() && received.updated_ms < held->updated_ms) {
      return make_error(ErrorCode::Denied,
                        "the publisher's manifest is older than the one that is already here");
    }
    return {};
  }

  Expected<void> check_continues(const Tokenizer& received) const {
    auto bytes = storage::read_file(env_, directory_ + "/" + tokenizer_file_name, max_tokenizer_file_bytes);
    if (!bytes.ok()) return {};
    const auto held = parse_tokenizer(*bytes);
    return held.ok() ? check_growth(*held, received) : Expected<void>();
  }

  storage::FileEnv& env_;
  const RemoteDatasetOptions& options_;
  const CancelToken& cancel_;
  const std::string directory_;
  Downloader downloader_;
};

}  // namespace

Expected<std::unique_ptr<Dataset>> open_remote_dataset(storage::FileEnv& env, const Clock& clock,
                                                       Logger& logger, const RemoteDatasetOptions& options,
                                                       const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(auto cache,
                      ShardCache::open(env, options.cache_directory + "/shards", options.cache_bytes));
  auto manifest = Opening(env, clock, options, cancel).update();
  // The publisher may have replaced manifest and signature between our two requests: look once more.
  if (!manifest.ok() && manifest.error().code == ErrorCode::Denied) {
    manifest = Opening(env, clock, options, cancel).update();
  }
  if (!manifest.ok()) {
    const ErrorCode code = manifest.error().code;
    if (code != ErrorCode::Unavailable && code != ErrorCode::Timeout) return std::move(manifest).error();
    auto held = load_manifest(env, options.cache_directory, options.trust);
    if (!held.ok()) return std::move(manifest).error();
    logger.warning(category, fmt::format("the publisher can't be reached, going on with what is here: {}",
                                         manifest.error().describe()));
    manifest = std::move(held);
  }
  NS_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(env, options.cache_directory, *manifest));
  return std::unique_ptr<Dataset>(std::make_unique<RemoteDataset>(
      env, clock, options, std::move(manifest).value(), std::move(tokenizer), std::move(cache)));
}

}  // namespace neuroshard::data
