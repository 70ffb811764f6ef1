// A live progress line on standard error: bar, share, rate, time left. Shown only where Output::live().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/node/output/output.h"
#include "core/base/clock.h"

namespace neuroshard::app {

// Erases its line when it ends.  Threads: one.
class ProgressLine {
 public:
  ProgressLine(const Output& output, const Clock& clock, std::string label);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  void set_label(std::string label) { label_ = std::move(label); }
  // total 0 = unknown: no bar, no time left. `detail` stands behind the bar ("loss 2.31, 12k tokens/s").
  // Redraws at most ten times a second; the call that reaches the total always draws.
  void update(std::uint64_t done, std::uint64_t total, std::string_view detail = {});
  // Takes the line away, so that other text can be written; the next update draws it again.
  void clear();

 private:
  const Output& output_;
  const Clock& clock_;
  std::string label_;
  MonotonicTime started_;
  MonotonicTime drawn_at_;
  std::uint64_t first_done_ = 0;
  bool started_counting_ = false;
  bool visible_ = false;
};

// "850 ms", "12 s", "3 min 05 s", "2 h 10 min".
std::string format_duration(double seconds);
// "512 B", "12.5 MiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace neuroshard::app
