// The size of the network's model that this node works with: that of its data directory (config/model_size.h). The chain names
// the size that the network has. Where that is another one, the node writes it into the data directory, ends and starts anew: so a
// change of size is a start like any other, and a node that is killed has the old model or the new one.
//
// Threads: the host's executor, but has_changed().
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/chain/registry.h"
#include "core/config/network_profile.h"
#include "core/rounds/training_rounds.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

class OwnModelSize {
 public:
  // directory: of the node. files and logger outlive the object.
  OwnModelSize(const config::ConsensusPart& consensus, const Hash256& network, std::string directory,
               storage::FileEnv& files, Logger& logger);

  std::uint32_t size() const { return static_cast<std::uint32_t>(consensus_.size); }
  // For TrainingServices: by the shapes and parts of the profile. Null: the model keeps its size.
  rounds::ResizeRow resize() const;
  // The node ends once it holds the anchors of the newest block, which then are on its disk, or computes none: then it gets them
  // from others after its start. larger_fits: the next larger model has room in this node's memory. Without that the node stays with
  // its own model, follows the chain, and starts anew when the network has that model again.
  void follow(const chain::Registry& registry, const rounds::TrainingView& training, bool larger_fits,
              MonotonicTime now);
  // The present model has no room: the node goes on with the one of the size before, which then waits as above.
  void lacks_memory(MonotonicTime now);
  // The network's model is larger than this node has memory for.
  bool waits() const { return waits_; }
  // Without a history on the disk a node begins with the first size. False: the node has to start anew for that; try_again writes
  // that down where the disk was full.
  bool can_begin(bool has_history, MonotonicTime now);
  void try_again(MonotonicTime now);
  // The node has to start anew.  Threads: any.
  bool has_changed() const { return changed_; }

 private:
  void change(std::uint32_t size, MonotonicTime now);
  bool keep(std::uint32_t size, MonotonicTime now);

  const config::ConsensusPart consensus_;
  const Hash256 network_;
  const std::string directory_;
  storage::FileEnv& files_;
  Logger& logger_;
  std::optional<MonotonicTime> other_since_, failed_at_;
  bool begins_anew_ = false;  // can_begin said no
  bool waits_ = false;
  std::atomic<bool> changed_{false};
};

}  // namespace neuroshard::runtime
