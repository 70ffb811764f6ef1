// What is asked for rather than shown at once: series, logs, checkpoints, settings. Plain values, paged and
// bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace neuroshard::node {

inline constexpr std::size_t max_series_buckets = 8192;  // twice the pixels of a wide screen
inline constexpr std::size_t max_page = 1000;            // entries of one page

// A series by name ("loss", "val_loss", "tokens_per_s", …) over [from, to), by training step.
struct SeriesQuery {
  std::string name;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;  // 0 = to the end
  std::size_t buckets = 0;    // at most this many; 1 … max_series_buckets
};
struct SeriesBucket {
  std::uint64_t first_step = 0;
  std::uint64_t count = 0;  // values in it
  double least = 0, most = 0, mean = 0, last = 0;
};
struct Series {
  std::string name;
  std::vector<SeriesBucket> buckets;  // ascending, without empty ones
};

struct LogQuery {
  std::uint64_t after = 0;  // sequence number of the last record seen; 0 = from the oldest kept
  std::size_t limit = 100;
  LogLevel least = LogLevel::Info;
};
struct LogEntry {
  std::uint64_t sequence = 0;
  WallTime at{};
  LogRecord record;
};
struct LogPage {
  std::vector<LogEntry> entries;
  std::uint64_t dropped = 0;  // records between `after` and the first entry that are no longer kept
};

struct CheckpointQuery {
  std::string after;  // name of the last one seen; empty = from the newest
  std::size_t limit = 100;
};
struct CheckpointEntry {
  std::string name;
  std::uint64_t step = 0;
  WallTime at{};
  std::uint64_t bytes = 0;
  double loss = 0;
  double held_out_loss = 0;  // 0 = not evaluated
  bool pinned = false;
  bool complete = true;
};
struct CheckpointPage {
  std::vector<CheckpointEntry> entries;  // newest first
  bool more = false;
};

struct SettingEntry {
  std::string name, value, default_value, type, unit_help, choices, origin;
  std::uint64_t least = 0, most = 0;
  bool locked = false;  // forced by a flag or the environment
};

}  // namespace neuroshard::node
