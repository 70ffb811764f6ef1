// Time series that a chart can ask for at any zoom: every series is kept in buckets of 1, 2, 4, 8 … steps,
// each with minimum, maximum, mean and count, so that a query reads at most twice as many buckets as the
// chart has pixels. Each level keeps its newest buckets only: the far past stays, with less detail. Stored in
// state.db, written in batches.
//
// Memory is bounded: one open bucket per series and level, and at most max_pending closed ones. If a full or
// read-only disk refuses a write, the buckets wait for the next attempt up to that bound; then the oldest are
// dropped. Threads: one; the database's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/storage/database.h"

namespace neuroshard::history {

inline constexpr std::uint32_t levels = 25;  // widths 1 … 2^24; wider ones are merged when asked for
inline constexpr std::uint32_t buckets_per_level = 4096;
inline constexpr std::uint32_t max_query_buckets = 4096;
inline constexpr std::size_t max_series = 256;  // names
inline constexpr std::size_t max_name_bytes = 64;
inline constexpr std::size_t max_pending = 8192;  // closed buckets that wait for the disk
inline constexpr std::uint32_t max_branches = 8;  // set aside by restores; the oldest goes
inline constexpr std::int64_t max_position = std::int64_t{1} << 52;

struct Bucket {
  std::int64_t first = 0;   // the first step that it covers
  std::int64_t width = 1;   // steps
  std::uint64_t count = 0;  // values in it, ≥ 1
  double min = 0;
  double max = 0;
  double mean = 0;
};

// The part that a restore set aside: everything after step `after`.
struct Branch {
  std::int64_t id = 0;  // ≥ 1
  std::int64_t after = 0;
  std::int64_t time_ms = 0;
};

class SeriesStore {
 public:
  // Over a database that has schema_v1; it outlives the store. Continues what is stored.
  static Expected<std::unique_ptr<SeriesStore>> open(storage::Database& database);
  ~SeriesStore();

  // Adds a value at `at` (a step, or a second since 1970), not before the series' newest. Held in memory
  // until flush(). InvalidArgument: `at` goes back or lies outside [0, max_position], the value is not
  // finite, or the name is not 1 to 64 of [a-z0-9_.]. Exhausted: too many series.
  Expected<void> append(std::string_view name, std::int64_t at, double value);
  // Writes what is not written yet, in one transaction. On failure it stays in memory and the next flush
  // retries.
  Expected<void> flush();
  // Buckets that waited so long for a disk that they were dropped.
  std::uint64_t dropped() const { return dropped_; }

  // The values in [from, to], in at most max_buckets (1 … max_query_buckets) buckets, ascending, empty ones
  // left out; the finest level that fits and still reaches back to `from`. The outer buckets may reach beyond
  // the range. An unknown name is an empty series. branch: 0, or one of branches().
  Expected<std::vector<Bucket>> query(std::string_view name, std::int64_t from, std::int64_t to,
                                      std::uint32_t max_buckets, std::int64_t branch = 0);
  // By name.
  std::vector<std::string> names() const;

  // Forgets every value after `at` in all series, because an earlier state was restored; with `now` set, what
  // is cut off stays readable as a branch. Exact while single steps around `at` are still kept; further back,
  // the values of the one finest bucket that `at` splits go too.
  Expected<void> truncate_after(std::int64_t at, const WallTime* keep_as_branch);
  // Newest first.
  Expected<std::vector<Branch>> branches();

 private:
  struct Cell {                  // a bucket while it may still change
    std::int64_t position = -1;  // at >> level; −1: none
    std::int64_t count = 0;
    double sum = 0, min = 0, max = 0;
  };
  struct Series {
    std::int64_t id = 0;
    std::int64_t first = 0, last = -1;
    bool dirty = false;
    std::uint32_t since_trim = 0;
    std::vector<Cell> open;  // [levels]
  };
  struct Pending {
    std::int64_t series = 0;
    std::uint32_t level = 0;
    Cell cell;
  };
  using SeriesMap = std::map<std::string, Series, std::less<>>;

  explicit SeriesStore(storage::Database& database) : database_(database) {}
  Expected<void> load();
  Expected<void> load_open(Series& series);
  Expected<Series*> find_or_create(std::string_view name, std::int64_t at);
  Expected<void> write_all();
  Expected<void> trim(const Series& series);
  Expected<void> cut(Series& series, std::int64_t at, std::int64_t branch);
  Expected<std::uint32_t> usable_level(const Series& series, std::uint32_t level, std::int64_t from,
                                       std::int64_t branch);
  void close(const Series& series, std::uint32_t level);

  storage::Database& database_;
  SeriesMap series_;
  std::vector<Pending> pending_;
  std::uint64_t dropped_ = 0;
};

}  // namespace neuroshard::history
