// A dataset that a publisher serves over HTTP: manifest and tokenizer are fetched and checked at opening,
// shards on demand into a bounded cache. Other nodes, where there are some, give what they cached when the
// publisher is away, and are offered what is here.
#pragma once

#include <memory>
#include <string>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/data/dataset.h"
#include "core/data/downloader.h"
#include "core/data/peer_source.h"

namespace neuroshard::data {

struct RemoteDatasetOptions {
  std::string manifest_url;                // http(s)://…/manifest.json
  std::string cache_directory;             // created when missing
  std::uint64_t cache_bytes = 2ull << 30;  // disk cap of the cached shards
  ManifestTrust trust;
  DownloadOptions download;
  PeerSource* peers = nullptr;                        // outlives the dataset; null: the publisher only
  Duration peer_patience = std::chrono::seconds(60);  // until one is known, where nothing usable is cached
};

// Where the publisher gives no usable manifest, the dataset opens with one from peers, else with a cached one
// that still verifies, and says so in the log. The publisher's error when there is none of them: Unavailable or
// Timeout when it can't be reached. Cancelled, and errors of the disk.
Expected<std::unique_ptr<Dataset>> open_remote_dataset(storage::FileEnv& env, const Clock& clock,
                                                       Logger& logger, const RemoteDatasetOptions& options,
                                                       const CancelToken& cancel);

// The content of a cache directory, without the publisher; nothing is changed, so a node may use the directory
// meanwhile. load() gives NotFound for shards that are not cached. NotFound: there is no manifest.
Expected<std::unique_ptr<Dataset>> open_cached_dataset(storage::FileEnv& env,
                                                       const std::string& cache_directory,
                                                       const ManifestTrust& trust);

}  // namespace neuroshard::data
