// Waits for a condition that another thread or process brings about. Header only; needs Qt.
#pragma once

#include <QDeadlineTimer>
#include <QElapsedTimer>
#include <QTest>
#include <QThread>
#include <functional>

namespace neuroshard::testing {

// True as soon as the condition holds; false after 20 s. Waits without sleeping.
inline bool until(const std::function<bool()>& condition) {
  QElapsedTimer clock;
  clock.start();
  while (!condition()) {
    if (clock.elapsed() > 20'000) return false;
    QThread::yieldCurrentThread();
  }
  return true;
}

// True as soon as the condition was seen once; false when the time is over. Runs the event loop between two looks.
// For a condition that can become false again: QTRY_VERIFY asks once more after it was true.
inline bool seen_once(const std::function<bool()>& condition, int patience_ms) {
  const QDeadlineTimer deadline(patience_ms);
  while (!condition()) {
    if (deadline.hasExpired()) return false;
    QTest::qWait(50);
  }
  return true;
}

}  // namespace neuroshard::testing
