// The user's limits on the disk of a node, from its settings.
#pragma once

#include <memory>

#include "core/config/data_directory.h"
#include "core/runtime/runtime_services.h"
#include "core/storage/disk_budget.h"

namespace neuroshard::runtime {

storage::DiskLimits disk_limits(const config::Settings& settings);
// Of the whole data directory.  Errors: as storage::DiskBudget::open().
Expected<std::shared_ptr<storage::DiskBudget>> open_disk_budget(const config::DataDirectory& directory,
                                                                const RuntimeServices& services);

}  // namespace neuroshard::runtime
