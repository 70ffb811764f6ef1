// Lines of a log, oldest first, with a number each. They stand in blocks that copies share: what takes longer
// than the log stays as it is takes a copy, which costs a pointer per block and not a line each.
#pragma once

#include <QString>
#include <deque>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace neuroshard::ui {

struct LogLine {
  quint64 sequence = 0;  // 0 = a gap
  WallTime at{};
  LogLevel level = LogLevel::Info;
  QString category, message;
};

// Threads: one at a time, copies included. Only the first owner may add; a copy does not see what is added.
class LogLines {
 public:
  quint64 begin() const { return begin_; }  // number of the oldest line
  quint64 end() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  const LogLine& operator[](quint64 number) const {
    return (*blocks_[static_cast<std::size_t>(number / block_lines - begin_ / block_lines)])[number %
                                                                                             block_lines];
  }
  void push_back(LogLine line) {
    if (end_ % block_lines == 0) {
      blocks_.push_back(std::make_shared<std::vector<LogLine>>());
      blocks_.back()->reserve(block_lines);  // lines never move
    }
    blocks_.back()->push_back(std::move(line));
    ++end_;
  }
  // Forgets all lines before `number`, memory by whole blocks.
  void drop_before(quint64 number) {
    for (quint64 block = begin_ / block_lines; block < number / block_lines; ++block) blocks_.pop_front();
    begin_ = number;
  }

 private:
  static constexpr quint64 block_lines = 512;
  std::deque<std::shared_ptr<std::vector<LogLine>>> blocks_;  // of begin_'s to of the last line's
  quint64 begin_ = 0, end_ = 0;
};

// A copy of some lines of a log; later lines do not change it.
struct LogExcerpt {
  LogLines lines;
  std::vector<quint64> numbers;  // in order
  qsizetype size() const { return static_cast<qsizetype>(numbers.size()); }
  const LogLine& operator[](qsizetype i) const { return lines[numbers[static_cast<std::size_t>(i)]]; }
};

}  // namespace neuroshard::ui
