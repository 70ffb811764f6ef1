// Checkpoints of other nodes: which they offer, and getting one, all its files from everybody who has them at
// once (core/exchange). A checkpoint's id is the SHA-256 of its manifest, and the manifest has the hashes of
// its files: so the id says exactly what is got, whoever gives it.
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

// Into `folder`, made when missing, from which it can be imported; what came is kept there when it is
// interrupted, and the next call goes on. Errors: InvalidArgument (the id, another network), Corrupt (an id
// of something else), Unavailable (nobody gives it), those of the disk, Cancelled.
Expected<void> fetch_checkpoint(const std::string& id, const std::string& folder, const GuestFlags& flags,
                                const std::string& profile, CommandContext& context);

}  // namespace neuroshard::app
