#include "app/node/output/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace neuroshard::app {
namespace {

constexpr Duration redraw_period = std::chrono::milliseconds(100);

std::string bar(double share, int terminal_width) {
  const int bar_width = terminal_width >= 100 ? 24 : 12;
  const int filled = static_cast<int>(std::lround(share * bar_width));
  std::string text = "[";
  for (int i = 0; i < bar_width; ++i) text += i < filled ? '#' : '.';
  return text + "]";
}

}  // namespace

ProgressLine::ProgressLine(const Output& output, const Clock& clock, std::string label)
    : output_(output), clock_(clock), label_(std::move(label)), started_(clock.monotonic_now()) {}

void ProgressLine::update(std::uint64_t done, std::uint64_t total, std::string_view detail) {
  if (!output_.live()) return;
  const MonotonicTime now = clock_.monotonic_now();
  if (!started_counting_) {
    started_counting_ = true;
    first_done_ = done;
    started_ = now;
  }
  const bool complete = total > 0 && done >= total;
  if (visible_ && !complete && now - drawn_at_ < redraw_period) return;
  std::string text = label_;
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    text += fmt::format(" {} {:3.0f} %", bar(share, output_.width()), share * 100);
    const double elapsed = to_seconds(now - started_);
    const std::uint64_t advanced = done > first_done_ ? done - first_done_ : 0;
    if (advanced > 0 && elapsed >= 1 && !complete) {
      text += fmt::format("  {} left", format_duration(elapsed / static_cast<double>(advanced) *
                                                       static_cast<double>(total - done)));
    }
  }
  if (!detail.empty()) text += fmt::format("  {}", detail);
  const auto columns = static_cast<std::size_t>(std::max(20, output_.width() - 1));
  if (text.size() > columns) text.resize(columns);
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  visible_ = true;
  drawn_at_ = now;
}

void ProgressLine::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0)) return "—";
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 1e12));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace neuroshard::app
