// The user's monthly data limit: bytes sent and received in a calendar month (UTC). The count is kept in a
// small file, that of strangers in another one, so that neither a restart nor a kill resets them. Months follow the wall clock; a clock set back
// within the month keeps the count.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/storage/period_count.h"

namespace neuroshard::net {

class TrafficCap {
 public:
  // limit: bytes a month, both directions together; 0 = none. The first save creates the file. Corrupt: the
  // file has another format; the message says to remove it. `files` outlives this.  Threads: one.
  static Expected<TrafficCap> open(storage::FileEnv& files, std::string path, std::uint64_t limit,
                                   WallTime now);

  // Counts what was transferred.  Errors: as PeriodCount::add().
  Expected<void> count(std::uint64_t bytes, WallTime now);
  // Of the counted bytes, those of strangers.  Errors: as count().
  Expected<void> count_strangers(std::uint64_t bytes, WallTime now);
  // Writes the exact counts; at a clean stop.
  Expected<void> save(WallTime now);

  std::uint64_t used(WallTime now);
  // Bytes left this month; the largest value without a limit.
  std::uint64_t left(WallTime now);
  // The bytes that strangers may use until the end of today: their share of the month, day by day, less what they have
  // used. The largest value without a limit.
  std::uint64_t left_to_strangers(double share, WallTime now);
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  // When a new month begins and the count restarts.
  static WallTime next_month(WallTime now);

 private:
  TrafficCap(storage::PeriodCount count, storage::PeriodCount strangers, std::uint64_t limit)
      : count_(std::move(count)), strangers_(std::move(strangers)), limit_(limit) {}

  storage::PeriodCount count_, strangers_;  // a month: 12 · year + month − 1
  std::uint64_t limit_;
};

}  // namespace neuroshard::net
