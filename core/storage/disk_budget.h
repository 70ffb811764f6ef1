// The user's limits on the disk, for whatever writes much: the space of the data directory, and the bytes that are
// written in a day (UTC). The bytes of a day are counted in a file, `writes.day`.
//
// The space is what measure() found, files without a name (storage/file_spool.h), and what was written since.
// Links are followed in the data directory's first level only, for example `data` on a larger disk.
// Checkpoints make room for everything else, so only those that are never deleted count.
//
// Nothing is refused before the first measure(). Room is asked for before something large begins; after that it is
// written and counted.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/storage/period_count.h"

namespace neuroshard::storage {

// 0: no limit.
struct DiskLimits {
  std::uint64_t space = 0;
  std::uint64_t written_a_day = 0;
};

struct DiskBudgetOptions {
  std::string folder;                               // the data directory
  std::uint64_t least_free = 0;                     // stays free on its disk
  std::string excluded;                             // a folder in it that makes room for everything else
  std::function<std::uint64_t()> kept_of_excluded;  // the part of it that stays; null: nothing
};

class DiskBudget {
 public:
  // All outlive the object.  Corrupt: `writes.day` has another format.
  static Expected<std::shared_ptr<DiskBudget>> open(FileEnv& files, const Clock& clock, Logger& logger,
                                                    DiskBudgetOptions options, const DiskLimits& limits);
  // In force from the next check() on.
  void set_limits(const DiskLimits& limits);

  // Room for so many more bytes, beside what is reserved.
  // Exhausted names the limit and what to do; the text is the same as long as the reason is.
  Expected<void> check(std::uint64_t bytes) const;
  // Of the disk alone, whatever the limits and what is reserved.
  Expected<void> check_free(std::uint64_t bytes) const;
  // For what wrote() reports next, instead of what was reserved before.
  void reserve(std::uint64_t bytes);
  // Bytes of files with a name.
  void wrote(std::uint64_t bytes);
  // Bytes of a file without a name, until they are given back. The day has room for them, but only those that are
  // written count for it.
  void hold(std::uint64_t bytes);
  // Into such a file. first: of them, where nothing was written before.
  void wrote_held(std::uint64_t bytes, std::uint64_t first);
  // unwritten: of them, where nothing was written.
  void give_back(std::uint64_t bytes, std::uint64_t unwritten);

  std::uint64_t written_today() const;
  // Of everything but the excluded folder.
  std::uint64_t space_used() const;
  // Bytes in the excluded folder: they count for the day alone.
  void count(std::uint64_t bytes);
  // As many as another count says, if that is more.
  void written_at_least(std::int32_t day, std::uint64_t bytes);
  // Lists the folder and asks how much is free: takes a while.
  void measure();
  // Writes the exact count of the day; at a clean stop.
  void save();

 private:
  DiskBudget(FileEnv& files, const Clock& clock, Logger& logger, DiskBudgetOptions options,
             const DiskLimits& limits, PeriodCount count);
  // With the lock.
  void count_for_day(std::uint64_t bytes);
  Expected<void> has_free(std::uint64_t bytes) const;

  FileEnv& files_;
  const Clock& clock_;
  Logger& logger_;
  const DiskBudgetOptions options_;
  mutable std::mutex mutex_;
  DiskLimits limits_;
  mutable PeriodCount day_;
  bool measured_ = false;
  bool failed_ = false;  // the last write of the day's count failed
  std::uint64_t reserved_ = 0, held_ = 0;
  std::uint64_t unwritten_ = 0;  // of those that are held
  std::uint64_t named_ = 0;      // bytes of files with a name
  std::uint64_t kept_ = 0;       // of the excluded folder
  std::uint64_t free_;           // on the disk; the largest value: not known
};

// Bytes of all files below a data directory, with links as above.
std::uint64_t tree_bytes(FileEnv& files, const std::string& path);

}  // namespace neuroshard::storage
