// The files of a published dataset: from the publisher, else from other nodes that cached them.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/data/downloader.h"
#include "core/data/remote_dataset.h"

namespace neuroshard::data::detail {

// Threads: any; two calls must not have the same path at once.
class PublishedFiles {
 public:
  // All outlive it.
  PublishedFiles(storage::FileEnv& env, const Clock& clock, Logger& logger,
                 const RemoteDatasetOptions& options);

  // Of the publisher only. Unavailable, Timeout: it is away.
  Expected<void> from_publisher(const DownloadRequest& request, const CancelToken& cancel);
  // A file whose hash is known. The publisher is passed over for a minute when it was found away; other nodes
  // are asked where it is away, or does not give this file. The error is the publisher's, with what the
  // others said.
  Expected<void> get(const DownloadRequest& request, std::optional<ShardId> shard, const CancelToken& cancel);
  // The publisher was away when it was last asked: "" if it was not, else a few words for a person.
  std::string trouble() const;

 private:
  bool skips_publisher() const;
  void note(const Expected<void>& outcome, bool peers_help);

  const Clock& clock_;
  Logger& logger_;
  const RemoteDatasetOptions options_;
  DownloadOptions download_;
  Downloader downloader_;
  mutable std::mutex mutex_;
  std::optional<MonotonicTime> away_since_;
};

}  // namespace neuroshard::data::detail
