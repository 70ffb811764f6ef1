#include "core/runtime/disk_limits.h"

#include <algorithm>

#include "core/checkpoint/retention.h"

namespace neuroshard::runtime {
namespace {

// Of the checkpoints that retention never deletes.
std::uint64_t kept_checkpoint_bytes(storage::FileEnv& files, const std::string& folder) {
  const checkpoint::Catalogue catalogue(files, folder);
  const auto entries = catalogue.list();
  if (!entries.ok()) return 0;
  checkpoint::RetentionPolicy least;
  least.keep_last = 1;
  least.keep_best = false;
  least.disk_cap_bytes = 1;
  const std::vector<std::string> deleted = checkpoint::plan_retention(*entries, least);
  std::uint64_t bytes = 0;
  for (const checkpoint::Entry& entry : *entries)
    if (std::find(deleted.begin(), deleted.end(), entry.name) == deleted.end()) bytes += entry.bytes;
  return bytes;
}

}  // namespace

storage::DiskLimits disk_limits(const config::Settings& settings) {
  return {settings.number(config::Setting::DiskLimit),
          settings.number(config::Setting::CheckpointDailyWriteBudget)};
}

Expected<std::shared_ptr<storage::DiskBudget>> open_disk_budget(const config::DataDirectory& directory,
                                                                const RuntimeServices& services) {
  storage::DiskBudgetOptions options;
  options.folder = directory.path();
  options.least_free = config::min_free_bytes;
  options.excluded = "checkpoints";
  options.kept_of_excluded = [&files = services.files, folder = directory.checkpoints_path()] {
    return kept_checkpoint_bytes(files, folder);
  };
  return storage::DiskBudget::open(services.files, services.clock, services.logger, std::move(options),
                                   disk_limits(directory.settings()));
}

}  // namespace neuroshard::runtime
