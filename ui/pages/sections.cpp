#include "ui/pages/sections.h"

#include <QWidget>

namespace neuroshard::ui {

void Sections::make_one() {
  const std::function<void()> make = std::move(waiting_.front());
  waiting_.pop_front();
  make();
  ++made_;
}

bool Sections::make_next() {
  if (waiting_.empty()) return false;
  make_one();
  for (QWidget* part : whole_.findChildren<QWidget*>()) part->ensurePolished();
  return true;
}

void Sections::make_all() {
  while (!waiting_.empty()) make_one();
}

}  // namespace neuroshard::ui
