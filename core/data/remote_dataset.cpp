#include "core/data/remote_dataset.h"

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "core/crypto/hash.h"
#include "core/data/detail/dataset_base.h"
#include "core/data/detail/published_files.h"
#include "core/data/manifest_store.h"
#include "core/data/shard_cache.h"

namespace neuroshard::data {
namespace {

constexpr std::uint64_t max_signature_bytes = 4096;
constexpr const char* category = "data";
constexpr Duration cancel_check = std::chrono::milliseconds(50);
constexpr const char* shards_folder = "/shards";  // of the cache directory

PeerFile shard_file(const ShardEntry& entry, std::string path) {
  PeerFile file;
  file.sha256 = entry.sha256;
  file.size = file.max_bytes = entry.size;
  file.path = std::move(path);
  file.shard = entry.id;
  return file;
}

// The manifest is signed, so the publisher has the shard: a later try may give it. Until then a server has
// lost the file, a proxy answers in its place, or this disk is full.
Error for_a_later_try(Error error) {
  switch (error.code) {
    case ErrorCode::NotFound:
    case ErrorCode::Denied:
    case ErrorCode::Corrupt:
    case ErrorCode::InvalidArgument:
    case ErrorCode::Exhausted: error.code = ErrorCode::Unavailable; break;
    default: break;
  }
  return error;
}

class RemoteDataset final : public detail::DatasetBase {
 public:
  RemoteDataset(storage::FileEnv& env, const RemoteDatasetOptions& options, Manifest manifest,
                std::shared_ptr<const Tokenizer> tokenizer, std::unique_ptr<ShardCache> cache,
                std::unique_ptr<detail::PublishedFiles> published)
      : DatasetBase(env, std::move(manifest), std::move(tokenizer)),
        options_(options),
        cache_(std::move(cache)),
        published_(std::move(published)) {
    if (options_.peers != nullptr)
      cache_->set_gone([peers = options_.peers](const Hash256& hash) { peers->withdraw(hash); });
  }

  Expected<void> prefetch(ShardId id, const CancelToken& cancel) override {
    const ShardEntry* entry = manifest().find(id);
    if (entry == nullptr)
      return make_error(ErrorCode::NotFound, fmt::format("the manifest lists no shard {}", id));
    NS_ASSIGN_OR_RETURN(const std::string path, fetch(*entry, cancel));
    return {};
  }
  bool is_here(ShardId id) const override {
    const ShardEntry* entry = manifest().find(id);
    return entry != nullptr && cache_->holds(entry->sha256);
  }
  std::string trouble() const override { return published_->trouble(); }

  // Files cached by an earlier run are offered to others, too.
  void offer_cached() {
    if (options_.peers == nullptr) return;
    for (const ShardEntry& entry : manifest().shards)
      if (cache_->holds(entry.sha256))
        options_.peers->offer(shard_file(entry, cache_->path_of(entry.sha256)));
  }

 protected:
  Expected<std::string> fetch(const ShardEntry& entry, const CancelToken& cancel) override {
    const auto here = have(entry, cancel);
    if (!here.ok())
      return for_a_later_try(here.error()).with_context(fmt::format("downloading shard {}", entry.id));
    return cache_->path_of(entry.sha256);
  }
  Expected<void> limit_cache(std::uint64_t bytes) override { return cache_->set_max_bytes(bytes); }
  bool discard(const ShardEntry& entry) override {
    cache_->remove(entry.sha256);
    return true;
  }

 private:
  Expected<void> have(const ShardEntry& entry, const CancelToken& cancel) {
    NS_ASSIGN_OR_RETURN(const bool here, begin_download(entry, cancel));
    if (here) return {};
    const std::string path = cache_->path_of(entry.sha256);
    auto fetched = download(entry, path, cancel);
    {
      const std::lock_guard<std::mutex> lock(downloads_);
      under_way_.erase(entry.sha256);
    }
    ended_.notify_all();
    if (fetched.ok() && options_.peers != nullptr) options_.peers->offer(shard_file(entry, path));
    return fetched;
  }

  // True: the shard is here. False: the caller downloads it. A load of the shard that is being fetched ahead
  // waits for it, so that nothing is fetched twice; a load of another one does not.
  Expected<bool> begin_download(const ShardEntry& entry, const CancelToken& cancel) {
    std::unique_lock<std::mutex> lock(downloads_);
    while (under_way_.count(entry.sha256) != 0) {
      if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the download was stopped");
      ended_.wait_for(lock, cancel_check);
    }
    if (cache_->touch(entry.sha256)) return true;
    cache_->resume(entry.sha256);
    std::uint64_t bytes = 0;
    for (const auto& [hash, size] : under_way_) bytes += size;
    if (auto room = cache_->make_room(entry.size, bytes); !room.ok()) {
      cache_->left(entry.sha256);
      return std::move(room).error();
    }
    under_way_[entry.sha256] = entry.size;
    return false;
  }

  Expected<void> download(const ShardEntry& entry, const std::string& path, const CancelToken& cancel) {
    DownloadRequest request;
    request.url = resolve_url(options_.manifest_url, entry.url);
    request.path = path;
    request.max_bytes = entry.size;
    request.size = entry.size;
    request.sha256 = entry.sha256;
    if (auto got = published_->get(request, entry.id, cancel); !got.ok()) {
      cache_->left(entry.sha256);
      return got;
    }
    cache_->added(entry.sha256, entry.size);
    return {};
  }

  const RemoteDatasetOptions options_;
  const std::unique_ptr<ShardCache> cache_;
  const std::unique_ptr<detail::PublishedFiles> published_;
  std::mutex downloads_;
  std::condition_variable ended_;               // a download
  std::map<Hash256, std::uint64_t> under_way_;  // bytes of the downloads that have their room
};

class CachedDataset final : public detail::DatasetBase {
 public:
  CachedDataset(storage::FileEnv& env, std::string folder, Manifest manifest,
                std::shared_ptr<const Tokenizer> tokenizer)
      : DatasetBase(env, std::move(manifest), std::move(tokenizer)), folder_(std::move(folder)) {}
  Expected<void> prefetch(ShardId, const CancelToken&) override { return {}; }
  bool is_here(ShardId id) const override {
    const ShardEntry* entry = manifest().find(id);
    return entry != nullptr && env_.exists(cached_shard_path(folder_, entry->sha256));
  }

 protected:
  Expected<std::string> fetch(const ShardEntry& entry, const CancelToken&) override {
    std::string path = cached_shard_path(folder_, entry.sha256);
    if (env_.exists(path)) return path;
    return make_error(ErrorCode::NotFound, fmt::format("shard {} is not on this disk", entry.id));
  }

 private:
  const std::string folder_;
};

// Manifest, signature and tokenizer, fetched into the cache directory.
class Opening {
 public:
  Opening(storage::FileEnv& env, Logger& logger, const RemoteDatasetOptions& options,
          detail::PublishedFiles& published, const CancelToken& cancel)
      : env_(env),
        logger_(logger),
        options_(options),
        published_(published),
        cancel_(cancel),
        directory_(options.cache_directory),
        incoming_(directory_ + "/incoming") {}

  // Into "incoming/" first, so that a bad answer never replaces what is here.
  Expected<Manifest> update() {
    NS_RETURN_IF_ERROR(clear());
    NS_RETURN_IF_ERROR(get(manifest_file_name, options_.manifest_url, max_manifest_bytes));
    NS_RETURN_IF_ERROR(
        get(manifest_signature_file_name, options_.manifest_url + ".sig", max_signature_bytes));
    return take_incoming();
  }

  // The newest manifest that any of them has. NotFound: none that is newer than what is here.
  Expected<Manifest> update_from_peers(bool something_held) {
    constexpr Duration short_patience = std::chrono::seconds(3);
    const Duration patience = something_held ? short_patience : options_.peer_patience;
    NS_ASSIGN_OR_RETURN(const auto claims, options_.peers->manifests(patience, cancel_));
    const auto held = load_manifest(env_, directory_, options_.trust);
    Error last = make_error(ErrorCode::NotFound, "no other node has a manifest of this publisher");
    std::size_t tried = 0;
    for (const ManifestClaim& claim : claims) {
      if (++tried > most_claims) break;
      if (claim.size > max_manifest_bytes || !names_publisher(claim)) {
        options_.peers->refuted(claim);
        continue;
      }
      // Nothing newer, or what is here under a false date.
      if ((held.ok() && claim.updated_ms <= held->updated_ms) || has(directory_, claim)) continue;
      if (auto fetched = fetch_manifest(claim); !fetched.ok()) {
        if (fetched.error().code != ErrorCode::Unavailable) return std::move(fetched).error();
        last = std::move(fetched).error();
        continue;
      }
      NS_RETURN_IF_ERROR(
          storage::write_file_atomic(env_, incoming_ + "/" + manifest_signature_file_name, claim.signature));
      auto manifest = take_incoming();
      if (manifest.ok()) {
        logger_.info(category, "received the publisher's signed manifest from other nodes");
        return manifest;
      }
      // An older manifest with the publisher's signature is not a false claim.
      if (!load_manifest(env_, incoming_, options_.trust).ok()) options_.peers->refuted(claim);
      last = std::move(manifest).error();
    }
    return last;
  }

 private:
  static constexpr std::size_t most_claims = 32;
  static constexpr Duration claim_patience = std::chrono::seconds(10);

  Expected<void> clear() {
    NS_RETURN_IF_ERROR(env_.remove_tree(incoming_));
    return env_.create_directories(incoming_);
  }

  // Into "incoming/". Several claims name one manifest if they differ in the rest: it is fetched once.
  Expected<void> fetch_manifest(const ManifestClaim& claim) {
    if (has(incoming_, claim)) return {};
    NS_RETURN_IF_ERROR(clear());
    PeerFile file;
    file.sha256 = claim.sha256;
    file.max_bytes = max_manifest_bytes;  // not the claimed size: the claim may be false in it alone
    file.path = incoming_ + "/" + manifest_file_name;
    file.patience = claim_patience;  // who claims it should have it
    return options_.peers->fetch(file, cancel_);
  }

  Expected<void> get(const std::string& name, const std::string& url, std::uint64_t max_bytes) {
    DownloadRequest request;
    request.url = url;
    request.path = incoming_ + "/" + name;
    request.max_bytes = max_bytes;
    return published_.from_publisher(request, cancel_);
  }

  Expected<Manifest> take_incoming() {
    NS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(env_, incoming_, options_.trust));
    NS_RETURN_IF_ERROR(refuse_older(manifest));
    if (!load_tokenizer(env_, directory_, manifest).ok()) {
      DownloadRequest request;
      request.url = resolve_url(options_.manifest_url, tokenizer_file_name);
      request.path = incoming_ + "/" + tokenizer_file_name;
      request.max_bytes = max_tokenizer_file_bytes;
      request.sha256 = manifest.tokenizer_hash;
      NS_RETURN_IF_ERROR(published_.get(request, {}, cancel_));
      NS_ASSIGN_OR_RETURN(const auto received, load_tokenizer(env_, incoming_, manifest));
      NS_RETURN_IF_ERROR(check_continues(*received));
      NS_RETURN_IF_ERROR(move(tokenizer_file_name));
    }
    NS_RETURN_IF_ERROR(keep_pending_manifest(env_, directory_, options_.trust));
    // In the order of manifest_store.h, so that a stop in between leaves the old or the new manifest.
    const std::string pending = std::string(manifest_file_name) + ".new";
    NS_RETURN_IF_ERROR(env_.rename(incoming_ + "/" + manifest_file_name, directory_ + "/" + pending));
    NS_RETURN_IF_ERROR(move(manifest_signature_file_name));
    NS_RETURN_IF_ERROR(env_.rename(directory_ + "/" + pending, directory_ + "/" + manifest_file_name));
    NS_RETURN_IF_ERROR(env_.sync_directory(directory_));
    return manifest;
  }

  Expected<void> move(const char* name) {
    return env_.rename(incoming_ + "/" + name, directory_ + "/" + name);
  }

  bool names_publisher(const ManifestClaim& claim) const {
    const auto signature = parse_manifest_signature(claim.signature);
    return signature.ok() && (!options_.trust.publisher || signature->key == *options_.trust.publisher);
  }

  bool has(const std::string& folder, const ManifestClaim& claim) const {
    const auto bytes = storage::read_file(env_, folder + "/" + manifest_file_name, max_manifest_bytes);
    return bytes.ok() && crypto::sha256(*bytes) == claim.sha256;
  }

  // A signed manifest of yesterday is still signed: somebody in between must not take data away with it.
  Expected<void> refuse_older(const Manifest& received) const {
    const auto held = load_manifest(env_, directory_, options_.trust);
    if (held.ok() && received.updated_ms < held->updated_ms) {
      return make_error(ErrorCode::Denied, "the manifest is older than the local one");
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
  Logger& logger_;
  const RemoteDatasetOptions& options_;
  detail::PublishedFiles& published_;
  const CancelToken& cancel_;
  const std::string directory_;
  const std::string incoming_;
};

// Files that any node may ask for: the signed manifest and the tokenizer.
void offer_opened(storage::FileEnv& env, const RemoteDatasetOptions& options, const Manifest& manifest) {
  const std::string folder = options.cache_directory + "/";
  const std::string path = folder + manifest_file_name;
  const auto bytes = storage::read_file(env, path, max_manifest_bytes);
  const auto signature = storage::read_file(env, folder + manifest_signature_file_name, max_signature_bytes);
  if (bytes.ok() && signature.ok())
    options.peers->offer_manifest({crypto::sha256(*bytes), bytes->size(), manifest.updated_ms, *signature},
                                  path);
  const auto tokenizer = env.open_read(folder + tokenizer_file_name);
  if (!tokenizer.ok()) return;
  PeerFile file;
  file.sha256 = manifest.tokenizer_hash;
  file.size = file.max_bytes = (*tokenizer)->size();
  file.path = folder + tokenizer_file_name;
  options.peers->offer(file);
}

// Neither a stop nor an own disk that is full or broken is the publisher's doing.
bool is_of_publisher(const Error& error) {
  return error.code != ErrorCode::Cancelled && error.code != ErrorCode::Exhausted &&
         error.code != ErrorCode::Io;
}

// The publisher's; where it gives none that is usable, the newest that other nodes give or this node holds.
Expected<Manifest> find_manifest(storage::FileEnv& env, Logger& logger, const RemoteDatasetOptions& options,
                                 detail::PublishedFiles& published, const CancelToken& cancel) {
  auto manifest = Opening(env, logger, options, published, cancel).update();
  // The publisher may have replaced manifest and signature between our two requests: look once more.
  if (!manifest.ok() && manifest.error().code == ErrorCode::Denied)
    manifest = Opening(env, logger, options, published, cancel).update();
  if (manifest.ok() || !is_of_publisher(manifest.error())) return manifest;
  auto held = load_manifest(env, options.cache_directory, options.trust);
  Expected<Manifest> given = make_error(ErrorCode::NotFound, "no other node was asked");
  if (options.peers != nullptr) {
    given = Opening(env, logger, options, published, cancel).update_from_peers(held.ok());
    if (!given.ok() && given.error().code == ErrorCode::Cancelled) return given;
  }
  if (!given.ok() && !held.ok()) {
    Error error = std::move(manifest).error();
    if (options.peers != nullptr) error.message += "; other nodes: " + given.error().message;
    return error;
  }
  const ErrorCode code = manifest.error().code;
  const bool away = code == ErrorCode::Unavailable || code == ErrorCode::Timeout;
  logger.warning(category, fmt::format("the publisher {}; continuing with {}: {}",
                                       away ? "is not reachable" : "gave no usable manifest",
                                       given.ok() ? "that of other nodes" : "the local data",
                                       manifest.error().describe()));
  return given.ok() ? std::move(given) : std::move(held);
}

}  // namespace

Expected<std::unique_ptr<Dataset>> open_remote_dataset(storage::FileEnv& env, const Clock& clock,
                                                       Logger& logger, const RemoteDatasetOptions& options,
                                                       const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(auto cache,
                      ShardCache::open(env, options.cache_directory + shards_folder, options.cache_bytes));
  auto published = std::make_unique<detail::PublishedFiles>(env, clock, logger, options);
  NS_ASSIGN_OR_RETURN(Manifest manifest, find_manifest(env, logger, options, *published, cancel));
  NS_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(env, options.cache_directory, manifest));
  if (options.peers != nullptr) offer_opened(env, options, manifest);
  auto dataset = std::make_unique<RemoteDataset>(env, options, std::move(manifest), std::move(tokenizer),
                                                 std::move(cache), std::move(published));
  dataset->offer_cached();
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Expected<std::unique_ptr<Dataset>> open_cached_dataset(storage::FileEnv& env,
                                                       const std::string& cache_directory,
                                                       const ManifestTrust& trust) {
  NS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(env, cache_directory, trust));
  NS_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(env, cache_directory, manifest));
  return std::unique_ptr<Dataset>(std::make_unique<CachedDataset>(env, cache_directory + shards_folder,
                                                                  std::move(manifest), std::move(tokenizer)));
}

}  // namespace neuroshard::data
