// Checkpoints of other nodes: which they offer, and getting one, all of it or some slots, from everybody who
// has it at once (core/exchange). A checkpoint's id is the SHA-256 of its manifest, and the manifest has the
// hashes of its files: so the id says exactly what is got, whoever gives it.
#pragma once

#include <string>
#include <vector>

#include "app/node/guest.h"

namespace neuroshard::app {

// What nodes say is their newest checkpoint.
inline constexpr const char* newest_checkpoint_name = "checkpoints/newest";

struct OfferedCheckpoint {
  std::string id;      // 64 hexadecimal digits
  std::string folder;  // "0000000120-1a2b3c4d", as whoever offers it calls it
  std::uint64_t step = 0;
  std::vector<net::NodeId> nodes;
};
Expected<std::vector<OfferedCheckpoint>> offered_checkpoints(const GuestFlags& flags,
                                                             const std::string& profile,
                                                             CommandContext& context);

struct FetchFlags {
  std::string id;                  // of a checkpoint, or "newest": of the highest step that is offered
  std::vector<std::string> slots;  // as compute::to_string spells them; none: all of the checkpoint
};

// A folder that can be imported: all of the checkpoint, or one of these slots only, signed by a key made for
// it. Below `folder`, which is made when missing and may be given to a further fetch; what came is kept there
// when it is interrupted, and the next call goes on. Holders are those whom the source knows, and whoever has
// announced the checkpoint in the hash table. Errors: InvalidArgument (the id, a slot, another network),
// Corrupt (an id of something else), NotFound (nothing is offered), Unavailable (nobody gives it),
// Unsupported (slots of a checkpoint without slots.index), those of the disk, Cancelled.
struct FetchedCheckpoint {
  std::string work;    // everything that was fetched; to be removed when it is imported
  std::string folder;  // what can be imported
};
Expected<FetchedCheckpoint> fetch_checkpoint(const FetchFlags& what, const std::string& folder,
                                             const GuestFlags& flags, const std::string& profile,
                                             CommandContext& context);

}  // namespace neuroshard::app
