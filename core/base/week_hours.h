// Hours of the week in which something may happen: a grid of 7 days by 24 hours, in local time. A value; its
// text is what settings.toml keeps and what people write:
//
//   always · never · mon-fri 0-8,18-24; sat-sun · daily 22-6
//
// Entries are separated by ";". Each names days (mon … sun, ranges, "daily") and hours "from-to"; without
// hours it is the whole day, and hours that end before they begin go on into the next day.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard {

class WeekHours {
 public:
  static constexpr int days = 7;  // 0 = Monday
  static constexpr int hours = 24;
  static constexpr std::size_t max_text = 512;  // no grid needs more

  static WeekHours always();
  static WeekHours never() { return WeekHours(); }
  // InvalidArgument names the part that is wrong. Any bytes are safe.
  static Expected<WeekHours> parse(std::string_view text);
  // The shortest regular text; parses back to the same grid.
  std::string text() const;

  bool at(int day, int hour) const { return grid_[index(day, hour)]; }
  void set(int day, int hour, bool allowed) { grid_[index(day, hour)] = allowed; }
  bool is_always() const { return grid_.all(); }
  bool is_never() const { return grid_.none(); }
  friend bool operator==(const WeekHours& a, const WeekHours& b) { return a.grid_ == b.grid_; }

 private:
  static std::size_t index(int day, int hour) { return static_cast<std::size_t>(day * hours + hour); }
  std::bitset<days * hours> grid_;
};

}  // namespace neuroshard
