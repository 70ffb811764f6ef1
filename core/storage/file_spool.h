// Large intermediate results in files without a name (base/spool.h): the system removes them when nobody holds
// them any more, also after a kill. They are read by parts and never mapped, because mapped pages count as
// memory of the process.
//
// Items stay in memory as long as all of them together fit into `memory_bytes`: a small model needs no disk. An item
// that the disk has no room for, by the user's limits or by itself, stays in memory as well where it fits into the
// spare memory.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/spool.h"
#include "core/storage/disk_budget.h"
#include "core/storage/file_env.h"

namespace neuroshard::storage {

struct FileSpoolOptions {
  std::string folder;  // of the files, on the disk of the data directory; created when it is first needed
  std::uint64_t memory_bytes = 0;
  std::shared_ptr<DiskBudget> budget{};  // counts what is on the disk; null: no limits
  // Bytes of memory beyond memory_bytes, as of now; null: none. Any thread.
  std::function<std::uint64_t()> spare_memory{};
};

// Its items may outlive it.  Errors of create(): Exhausted when neither the disk nor the memory has room for the
// item; other errors of the disk.
std::shared_ptr<Spool> make_file_spool(FileSpoolOptions options);

// A file as it is now: one that is replaced under its name later does not change.  Errors: as open_read().
Expected<ByteSourcePtr> open_bytes(FileEnv& files, const std::string& path);
// As write_file_atomic(), by parts of 1 MiB.
Expected<void> copy_to_file(FileEnv& files, const std::string& path, const ByteSource& bytes);

}  // namespace neuroshard::storage
