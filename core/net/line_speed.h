// Measures the speed of this node's line without sending anything for it: by the bytes that travel while
// there is always something to send or to receive. The result is a speed that the line has carried, so it is
// never too high; it is too low where the other ends were slower.
//
// Only bulk data counts: pieces of files, deltas and anchors. The first second of a transfer and its first 4
// MiB don't count, because buffers on the way take them at any speed. Then each stretch of at least 2 s and 4
// MiB is one measurement, from message to message. A pause of more than a tenth of a second discards the
// stretch. The announced speed is the second highest of the last six hours that have a measurement, none of
// them a day old: a single high value may be an accident.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "core/base/clock.h"

namespace neuroshard::net {

enum class LineWay : std::uint8_t { Up, Down };

// Threads: any, all members.
class LineSpeed {
 public:
  static constexpr std::uint64_t bulk_bytes = 64u << 10;  // the least size of a bulk message
  static constexpr Duration first_time = std::chrono::seconds(1);
  static constexpr Duration least_time = std::chrono::seconds(2);
  static constexpr std::uint64_t least_bytes = 4u << 20;  // before the first measurement, and in each
  static constexpr Duration longest_pause = std::chrono::milliseconds(100);
  static constexpr std::size_t hours = 6;
  static constexpr Duration forgotten = std::chrono::hours(24);

  // Up and down in bytes a second: the user's limits, which also bound what is announced; 0 = no limit. The
  // clock outlives it.
  LineSpeed(const Clock& clock, std::uint64_t up_limit, std::uint64_t down_limit);
  void set_limits(std::uint64_t up, std::uint64_t down);

  // From now on there is something to transfer, until end() was called as often as begin().
  void begin(LineWay way);
  void end(LineWay way);
  // Bytes on the line (wire_bytes) that have left this program, or have arrived. Between begin() and end(),
  // except bytes beside this node's own transfers.
  void carried(LineWay way, std::uint64_t bytes);

  // Bytes per second; 0 = not measured.
  std::uint64_t speed(LineWay way) const;
  // The same, or the user's limit where nothing was measured. A line may be slower than that, never faster.
  std::uint64_t at_most(LineWay way) const;

 private:
  struct Hour {
    std::int64_t number = 0;
    double best = 0, second = 0;
  };
  struct Line {
    std::uint64_t limit = 0;
    std::size_t wanted = 0;              // calls of begin() without end()
    std::optional<MonotonicTime> since;  // start of the present stretch
    MonotonicTime paused{};              // when the last transfer ended
    bool counts = false;                 // the first second and 4 MiB have passed
    std::uint64_t bytes = 0;
    std::deque<Hour> measured;  // newest last
  };
  Line& line(LineWay way) { return lines_[static_cast<std::size_t>(way)]; }
  static void keep(Line& line, double rate, MonotonicTime now);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::array<Line, 2> lines_;
};

// There is something to transfer while it exists. Null: nothing is measured.
class LineDemand {
 public:
  LineDemand(LineSpeed* line, LineWay way) : line_(line), way_(way) {
    if (line_ != nullptr) line_->begin(way_);
  }
  ~LineDemand() {
    if (line_ != nullptr) line_->end(way_);
  }
  LineDemand(const LineDemand&) = delete;
  LineDemand& operator=(const LineDemand&) = delete;

 private:
  LineSpeed* const line_;
  const LineWay way_;
};

}  // namespace neuroshard::net
