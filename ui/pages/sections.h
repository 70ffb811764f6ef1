// The sections of a page, made one at a time, because making all of them takes longer than a frame. The
// page's constructor plans the sections. The window makes one in each idle turn of the event loop, and all
// remaining ones when the page opens.
#pragma once

#include <deque>
#include <functional>

class QWidget;

namespace neuroshard::ui {

// Threads: ui. The pieces are made in the order in which they were added; one may add others behind it.
class Sections {
 public:
  explicit Sections(QWidget& whole) : whole_(whole) {}
  void add(std::function<void()> make) { waiting_.push_back(std::move(make)); }
  bool done() const { return waiting_.empty(); }
  int made() const { return made_; }
  // The next piece, styled too, so that showing it is less work; false: there was none.
  bool make_next();
  void make_all();

 private:
  void make_one();

  int made_ = 0;
  QWidget& whole_;  // which they become parts of
  std::deque<std::function<void()>> waiting_;
};

}  // namespace neuroshard::ui
