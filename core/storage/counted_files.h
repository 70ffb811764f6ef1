// A file system that counts what is written through it for the user's limits (disk_budget.h).
//
// Threads: any.
#pragma once

#include <memory>

#include "core/storage/disk_budget.h"
#include "core/storage/file_env.h"

namespace neuroshard::storage {

// files outlives it.
std::unique_ptr<FileEnv> make_counted_files(FileEnv& files, std::shared_ptr<DiskBudget> budget);

}  // namespace neuroshard::storage
