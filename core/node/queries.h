// What is asked for rather than shown at once: series, logs, checkpoints, settings. Plain values, paged and
// bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace neuroshard::node {

inline constexpr std::size_t max_series_buckets = 4096;  // twice the pixels that a chart has
inline constexpr std::size_t max_page = 500;             // entries of one page

// A series by name ("loss", "val_loss", "tokens_per_s", …) over [from, to), by training step.
struct SeriesQuery {
  std::string name;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;  // 0 = to the end
  std::size_t buckets = 0;    // at most this many; 1 … max_series_buckets
};
struct SeriesBucket {
  std::uint64_t first_step = 0;
  std::uint64_t width = 1;  // steps
  std::uint64_t count = 0;  // values in it
  double least = 0, most = 0, mean = 0;
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
  std::vector<LogEntry> entries;  // ascending
  std::uint64_t next = 0;         // `after` of the following page
  bool more = false;
  std::uint64_t dropped = 0;  // records between `after` and the first entry that are not kept any more
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
  std::optional<double> loss;  // training; nats per token
  std::optional<double> held_out_loss;
  bool pinned = false;
  bool complete = true;
};
struct CheckpointPage {
  std::vector<CheckpointEntry> entries;  // newest first
  bool more = false;
};

struct SettingEntry {
  std::string name, value, default_value, type, help, choices, origin;
  std::uint64_t least = 0, most = 0;
  bool locked = false;  // forced by a flag or the environment
};

}  // namespace neuroshard::node
