// Checkpoints of other nodes: lists what they offer and fetches one, whole or some slots of it, from all of
// its holders at once (core/exchange). A checkpoint's id is the SHA-256 of its manifest, and the manifest has
// the hashes of its files. So the id fixes every byte, whichever node delivers it.
//
// Threads: the caller's; calls block, and callbacks run on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/config/network_profile.h"
#include "core/runtime/guest_visit.h"

namespace neuroshard::runtime {

// The name under which nodes publish their newest checkpoint.
inline constexpr const char* newest_checkpoint_name = "checkpoints/newest";

struct OfferedCheckpoint {
  std::string id;      // 64 hexadecimal digits
  std::string folder;  // "0000000120-1a2b3c4d", as the offering nodes name it
  std::uint64_t step = 0;
  std::vector<net::NodeId> nodes;
};

// The newest step first. Errors: those of the guest.
Expected<std::vector<OfferedCheckpoint>> offered_checkpoints(const FetchSession& session);

struct CheckpointChoice {
  std::string id;                  // of a checkpoint, or "newest": the highest step whose offer can be true
  std::vector<std::string> slots;  // as compute::to_string spells them; none: all of the checkpoint
  // Whether the checkpoint is wanted, called before its large files are fetched; empty: it is. Its error is
  // the result, and what arrived of the checkpoint is removed.
  std::function<Expected<void>(const Hash256& id)> check;
};

struct FetchedCheckpoint {
  std::string work;    // everything that was fetched; to be removed after the import
  std::string folder;  // the folder to import
};
// Fetches a checkpoint that can be imported: all of it, or one of these slots only, signed by a key made for
// it. It lies below `folder`, which is made when missing. After an interruption the next call with the same
// folder continues, if it is of the same checkpoint. All other folders below `folder` are removed: the caller
// makes sure that no other call works there. Holders are the nodes that the source knows and those that have
// announced the checkpoint in the hash table. Errors: InvalidArgument (the id, a slot, another network), Corrupt
// (the id is that of something else), NotFound (nothing is offered), Unavailable (nobody delivers it),
// Unsupported (slots of a checkpoint without slots.index), those of `check`, of check_offer() and of the disk,
// Cancelled.
Expected<FetchedCheckpoint> fetch_checkpoint(const CheckpointChoice& choice, const std::string& folder,
                                             const FetchSession& session);

// Before the large files are fetched: whether the disk has room for them and 64 MiB. `bytes`: of all of them;
// `folder` may hold a part already. Errors: Exhausted.
Expected<void> check_fetch_room(storage::FileEnv& files, const std::string& folder, std::uint64_t bytes);

// Before the large files are fetched: whether a node of this network can have saved a checkpoint with this
// manifest. step: as the offer says; nothing: no offer was followed. Errors: InvalidArgument (another step, a
// model that the network does not have, too many bytes), Unsupported (an unknown file).
Expected<void> check_offer(const checkpoint::Manifest& manifest, const config::ConsensusPart& consensus,
                           std::optional<std::uint64_t> step);

}  // namespace neuroshard::runtime
