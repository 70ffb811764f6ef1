#include "app/gui/notifier.h"

#include <QCoreApplication>
#include <algorithm>

namespace neuroshard::gui {

Notifier::Notifier(const Clock& clock, Wanted wanted, Show show)
    : clock_(clock), wanted_(std::move(wanted)), show_(std::move(show)) {}

void Notifier::add(Notification notification) {
  if (!wanted_(notification.about)) return;
  // The same again says nothing new.
  const bool known =
      std::any_of(waiting_.begin(), waiting_.end(), [&notification](const Notification& other) {
        return other.title == notification.title && other.text == notification.text;
      });
  if (known) return;
  ++waiting_count_;
  if (waiting_.size() < max_waiting) waiting_.push_back(std::move(notification));
  tick();
}

void Notifier::tick() {
  if (waiting_.empty()) return;
  const MonotonicTime now = clock_.monotonic_now();
  if (last_ && now - *last_ < rate) return;
  last_ = now;
  show_waiting();
}

void Notifier::show_waiting() {
  Notification shown = waiting_.front();
  if (waiting_count_ > 1) {
    // The most urgent class leads.
    shown.about = std::min_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
                    return a.about < b.about;
                  })->about;
    shown.title =
        QCoreApplication::translate("Notifier", "%n messages", nullptr, static_cast<int>(waiting_count_));
    QStringList titles;
    for (const Notification& one : waiting_) titles << one.title;
    titles.removeDuplicates();
    shown.text = titles.join('\n');
  }
  waiting_.clear();
  waiting_count_ = 0;
  show_(shown);
}

}  // namespace neuroshard::gui
