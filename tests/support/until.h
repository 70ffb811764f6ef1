// Waits for a condition that another thread brings about. Header only; needs Qt.
#pragma once

#include <QElapsedTimer>
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

}  // namespace neuroshard::testing
