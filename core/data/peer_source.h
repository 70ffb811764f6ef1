// Other nodes as a source of a published dataset's files, when the publisher is away: they cached what it
// served. Nothing that they say is believed: a manifest counts by the publisher's signature, everything else
// by its hash in the manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/data/manifest.h"

namespace neuroshard::data {

struct PeerFile {
  Hash256 sha256{};
  std::optional<std::uint64_t> size;  // not known: at most max_bytes
  std::uint64_t max_bytes = 0;
  std::string path;  // of the finished file; what came of it so far is beside it, in "<path>.part"
  std::optional<ShardId> shard;                  // where others look for it
  Duration patience = std::chrono::seconds(60);  // nothing came for so long
};

// A manifest that somebody says is the publisher's newest.
struct ManifestClaim {
  Hash256 sha256{};
  std::uint64_t size = 0;
  std::int64_t updated_ms = 0;
  Bytes signature;  // manifest.json.sig
  friend bool operator==(const ManifestClaim&, const ManifestClaim&) = default;
};

// Threads: any; calls block, but for the offers.
class PeerSource {
 public:
  virtual ~PeerSource() = default;
  // The newest first, none twice. Waits up to `patience` while no other node is known that has one; none is
  // an empty list. Cancelled.
  virtual Expected<std::vector<ManifestClaim>> manifests(Duration patience, const CancelToken& cancel) = 0;
  // The claim is false; the nodes that made exactly this one are charged with it.
  virtual void refuted(const ManifestClaim& claim) = 0;
  // The file is at its path, with its hash. Unavailable: nobody gave it; what came stays for the next call.
  // Cancelled, and errors of the disk.
  virtual Expected<void> fetch(const PeerFile& file, const CancelToken& cancel) = 0;
  // This node has it from now on, for others. A file that turns out to be gone is no longer offered.
  virtual void offer(const PeerFile& file) = 0;
  // The file is gone, or goes now.
  virtual void withdraw(const Hash256& sha256) = 0;
  virtual void offer_manifest(const ManifestClaim& claim, const std::string& path) = 0;
};

}  // namespace neuroshard::data
