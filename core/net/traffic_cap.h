// The user's monthly data limit: bytes sent and received in a calendar month (UTC). The count is kept in a
// small file, so that neither a restart nor a kill resets it. Months follow the wall clock; a clock set back
// within the month keeps the count.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/storage/file_env.h"

namespace neuroshard::net {

class TrafficCap {
 public:
  // limit: bytes a month, both directions together; 0 = none. The first save creates the file. Corrupt: the
  // file has another format; the message says to remove it. `files` outlives this.  Threads: one.
  static Expected<TrafficCap> open(storage::FileEnv& files, std::string path, std::uint64_t limit,
                                   WallTime now);

  // Counts what was transferred. The file is written ahead in pieces of 16 MiB, so a kill counts less than
  // one piece too much and never too little. An error: the count holds in memory and is written with the next
  // piece.
  Expected<void> count(std::uint64_t bytes, WallTime now);
  // Of the counted bytes, those of strangers. Written with the next piece, and by save(): a kill may forget some.
  void count_strangers(std::uint64_t bytes, WallTime now);
  // Writes the exact counts; at a clean stop.
  Expected<void> save(WallTime now);

  std::uint64_t used(WallTime now);
  // Bytes left this month; the largest value without a limit.
  std::uint64_t left(WallTime now);
  // What strangers may use until the end of today: their share of the month, day by day, less what they have
  // used. The largest value without a limit.
  std::uint64_t left_to_strangers(double share, WallTime now);
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  // When a new month begins and the count restarts.
  static WallTime next_month(WallTime now);

 private:
  TrafficCap(storage::FileEnv& files, std::string path, std::uint64_t limit)
      : files_(&files), path_(std::move(path)), limit_(limit) {}
  void roll(WallTime now);
  Expected<void> write(std::uint64_t value, std::uint64_t of_strangers);

  storage::FileEnv* files_;
  std::string path_;
  std::uint64_t limit_;
  std::int32_t month_ = 0;  // 12 · year + month − 1
  std::uint64_t used_ = 0;
  std::uint64_t written_ = 0;  // the count in the file
  std::uint64_t strangers_ = 0;
};

}  // namespace neuroshard::net
