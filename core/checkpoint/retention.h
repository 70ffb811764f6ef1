// Which checkpoints to keep (docs/protocol/checkpoints.md): the last N, the best of this node's own on
// held-out text, pinned ones, within a disk cap.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"

namespace neuroshard::checkpoint {

struct RetentionPolicy {
  std::uint32_t keep_last = 5;       // at least 1 is kept whatever this says
  bool keep_best = true;             // lowest held-out loss; imported ones don't count
  std::uint64_t disk_cap_bytes = 0;  // 0: none
  std::set<std::string> held;        // others are fetching them: kept as far as the cap allows
};

// A pure function of the list (newest first, as Catalogue::list gives it): names to delete, in the order in
// which to delete them. Never named: pinned ones, the chosen one, what an undo needs, and the newest complete
// one, even above the cap; the best one, and the forerunner of the newest (what it falls back to should it be
// damaged, also after a restore), only for the cap and after all others. Damaged ones stay for a person to
// look at, until the cap needs their room.
std::vector<std::string> plan_retention(const std::vector<Entry>& entries, const RetentionPolicy& policy);

// Lists, plans, removes. The names removed; the first failure stops it.
Expected<std::vector<std::string>> apply_retention(Catalogue& catalogue, const RetentionPolicy& policy);

// A person's choice for thinning out. All of these are kept; the other complete checkpoints are deleted.
struct PruneRules {
  std::uint32_t keep_newest = 5;       // at least 1 is kept whatever this says
  std::uint32_t keep_every_steps = 0;  // the newest of each so many steps; 0: none
  std::uint32_t keep_best = 1;         // so many with the lowest held-out losses; imported ones don't count
};
// A pure function of the list (newest first): names to delete, oldest first. Never named: pinned ones, the
// chosen one, the newest complete one, what an undo needs, and damaged ones, which are for a person to look
// at.
std::vector<std::string> plan_prune(const std::vector<Entry>& entries, const PruneRules& rules);

}  // namespace neuroshard::checkpoint
