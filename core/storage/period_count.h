// A count of bytes in a period, e.g. a day, in a small file: neither a restart nor a kill resets it. The file is
// written ahead in pieces of 16 MiB, so a kill counts less than one piece too much and never too little. On a full
// disk each piece is tried once.
//
// Periods have numbers that rise. A clock set back a little keeps the count of the later period: no limit is given twice. Where the
// clock was further ahead, the count becomes that of the present period: else a limit would last until that date.
// If the clock then jumps to the later period, it was far behind, as at the start of a computer that keeps no time: the
// later period has its count again. The file holds both counts meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/storage/file_env.h"

namespace neuroshard::storage {

inline constexpr std::int64_t most_periods_ahead = 2;

// Days since 1970-01-01 (UTC).
std::int32_t utc_day(WallTime wall);

class PeriodCount {
 public:
  // magic: four characters of the file's format; what: of the count, for people ("this month's traffic").
  // The first add() creates the file. `files` outlives this.  Threads: one.
  // Corrupt: the file has another format; the message says to remove it.
  static Expected<PeriodCount> open(storage::FileEnv& files, std::string path, std::string magic,
                                    const std::string& what, std::int32_t now);

  // An error: the count is not in the file. It holds in memory and is written with the next piece.
  Expected<void> add(std::uint64_t bytes, std::int32_t now);
  // Writes the exact count; at a clean stop.
  Expected<void> save(std::int32_t now);
  std::uint64_t used(std::int32_t now);
  std::int32_t period() const { return period_; }

 private:
  PeriodCount(storage::FileEnv& files, std::string path, std::string magic)
      : files_(&files), path_(std::move(path)), magic_(std::move(magic)) {}
  // The count of a period that the clock went back from, with what was added since.
  struct Later {
    std::int32_t period = 0;
    std::uint64_t used = 0;
  };
  void roll(std::int32_t now);
  void find_later(std::int32_t now);
  Expected<void> write(std::uint64_t value);

  storage::FileEnv* files_;
  std::string path_, magic_;
  std::int32_t period_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t written_ = 0;  // the count in the file
  std::uint64_t tried_ = 0;    // the count that could not be written; there is no further try up to it
  Expected<void> kept_;        // of the last write
  std::optional<Later> later_;
};

}  // namespace neuroshard::storage
