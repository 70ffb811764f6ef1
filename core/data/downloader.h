// Downloads over HTTP (libcurl) that survive being cut off: bytes go into "<path>.part", a later attempt asks
// for the rest with a range, and the file gets its name only after its size and SHA-256 are right.
//
// Waits and timeouts use the injected clock, random numbers and pause, so that tests of retries take no time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

struct DownloadOptions {
  Duration connect_timeout = std::chrono::seconds(10);
  Duration no_progress_timeout = std::chrono::seconds(30);  // not one byte came for so long
  std::uint32_t max_attempts = 8;  // in a row without a byte gained; one that gained some counts anew
  std::uint32_t max_corrupt = 2;   // complete downloads with a wrong hash
  Duration first_pause =
      std::chrono::milliseconds(500);  // doubles with each attempt, times 0.5 … 1 at random
  Duration longest_pause = std::chrono::seconds(30);
};

struct DownloadRequest {
  std::string url;   // http or https
  std::string path;  // of the finished file; its folder exists
  // Receiving stops with Corrupt beyond this: a server can't fill the disk.
  std::uint64_t max_bytes = 0;
  std::optional<std::uint64_t> size;  // exactly
  std::optional<Hash256> sha256;
};

struct DownloadResult {
  std::uint64_t received_bytes = 0;  // over the network, all attempts together
  std::uint64_t resumed_from = 0;    // bytes that an earlier call had left
  std::uint32_t attempts = 0;
};

// Received so far, and the whole size or 0 while it is not known.
using DownloadProgress = std::function<void(std::uint64_t received, std::uint64_t total)>;
// Waits that long; false when cancelled meanwhile.
using Pause = std::function<bool(Duration, const CancelToken&)>;
Pause make_pause();

// Threads: any; a call blocks the caller. Two calls must not have the same path at once.
class Downloader {
 public:
  Downloader(storage::FileEnv& env, const Clock& clock, std::uint64_t seed, Pause pause = make_pause());

  // NotFound: the server has no such file. Corrupt: what it gives is not what was promised, max_corrupt
  // times. Unavailable, Timeout: no attempt succeeded; the part stays for the next call. Cancelled, likewise.
  Expected<DownloadResult> fetch(const DownloadRequest& request, const DownloadOptions& options,
                                 const CancelToken& cancel = {}, const DownloadProgress& on_progress = {});

 private:
  storage::FileEnv& env_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const Pause pause_;
};

// "http://host/a/manifest.json" + "shard_0.pt" → "http://host/a/shard_0.pt"; an absolute reference is
// returned as it is.
std::string resolve_url(const std::string& base, const std::string& reference);

}  // namespace neuroshard::data
