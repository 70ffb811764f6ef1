#include "core/checkpoint/retention.h"

#include <algorithm>
#include <set>

namespace neuroshard::checkpoint {
namespace {

enum class Rank { Damaged, Surplus, Held, Best, Forerunner, Protected };

// Of an imported checkpoint, another node says which loss it has, and on which text.
bool has_own_loss(const Entry& entry) {
  return entry.complete() && entry.manifest.origin.empty() && entry.manifest.losses.held_out;
}

const Entry* best_of(const std::vector<Entry>& entries) {
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    if (!has_own_loss(entry)) continue;
    if (best == nullptr || *entry.manifest.losses.held_out < *best->manifest.losses.held_out) best = &entry;
  }
  return best;
}

}  // namespace

std::vector<std::string> plan_retention(const std::vector<Entry>& entries, const RetentionPolicy& policy) {
  const Entry* best = policy.keep_best ? best_of(entries) : nullptr;
  std::vector<std::string> deletions;
  std::vector<std::pair<Rank, const Entry*>> kept;
  std::uint64_t kept_bytes = 0;
  std::uint32_t complete = 0;
  const auto newest =
      std::find_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.complete(); });
  const std::string forerunner = newest == entries.end() ? std::string() : newest->manifest.parent;
  for (const Entry& entry : entries) {
    if (entry.complete()) ++complete;
    Rank rank = entry.complete() ? Rank::Surplus : Rank::Damaged;
    if (&entry == best) rank = Rank::Best;
    if (rank != Rank::Damaged && entry.name == forerunner) rank = Rank::Forerunner;
    if (entry.pinned || entry.chosen || entry.undo || (entry.complete() && complete == 1))
      rank = Rank::Protected;
    if (rank == Rank::Surplus && policy.held.count(entry.name) != 0) rank = Rank::Held;
    if (rank == Rank::Surplus && complete > std::max(policy.keep_last, 1u)) {
      deletions.push_back(entry.name);
      continue;
    }
    kept.emplace_back(rank, &entry);
    kept_bytes += entry.bytes;
  }
  std::reverse(deletions.begin(), deletions.end());  // oldest first
  if (policy.disk_cap_bytes == 0) return deletions;
  // Newest first, so walking backwards takes the oldest of each rank.
  for (const Rank rank : {Rank::Damaged, Rank::Surplus, Rank::Held, Rank::Best, Rank::Forerunner}) {
    for (auto item = kept.rbegin(); item != kept.rend() && kept_bytes > policy.disk_cap_bytes; ++item) {
      if (item->first != rank) continue;
      deletions.push_back(item->second->name);
      kept_bytes -= item->second->bytes;
    }
  }
  return deletions;
}

std::vector<std::string> plan_prune(const std::vector<Entry>& entries, const PruneRules& rules) {
  std::vector<const Entry*> best;
  for (const Entry& entry : entries)
    if (has_own_loss(entry)) best.push_back(&entry);
  std::stable_sort(best.begin(), best.end(), [](const Entry* a, const Entry* b) {
    return *a->manifest.losses.held_out < *b->manifest.losses.held_out;
  });
  if (best.size() > rules.keep_best) best.resize(rules.keep_best);

  std::vector<std::string> deletions;
  std::set<std::uint64_t> stretches;  // of keep_every_steps that have one kept
  std::uint32_t complete = 0;
  for (const Entry& entry : entries) {
    if (!entry.complete()) continue;
    ++complete;
    const bool first_of_stretch =
        rules.keep_every_steps != 0 && stretches.insert(entry.manifest.step / rules.keep_every_steps).second;
    const bool kept = entry.pinned || entry.chosen || entry.undo || first_of_stretch ||
                      complete <= std::max(rules.keep_newest, 1u) ||
                      std::find(best.begin(), best.end(), &entry) != best.end();
    if (!kept) deletions.push_back(entry.name);
  }
  std::reverse(deletions.begin(), deletions.end());
  return deletions;
}

Expected<std::vector<std::string>> apply_retention(Catalogue& catalogue, const RetentionPolicy& policy) {
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, catalogue.list());
  std::vector<std::string> deletions = plan_retention(entries, policy);
  for (const std::string& name : deletions) NS_RETURN_IF_ERROR(catalogue.remove(name));
  return deletions;
}

}  // namespace neuroshard::checkpoint
