// Small pieces of work for idle moments: one at a time, with pauses between them in which events
// are served. How long a piece may take is its owner's promise.
#pragma once

#include <QTimer>
#include <chrono>
#include <functional>
#include <vector>

namespace neuroshard::ui {

// Threads: ui.
class IdleSteps final : public QObject {
  Q_OBJECT
 public:
  static constexpr std::chrono::milliseconds delay{
      500};  // after start(): what was just asked for comes first
  static constexpr std::chrono::milliseconds pause{
      50};  // between two: at a frame each, a quarter of one processor

  // Each is called, with a pause before each time, until it says false: nothing of it is left.
  explicit IdleSteps(std::vector<std::function<bool()>> steps, QObject* parent = nullptr);
  void start();  // continues where it stopped; nothing when all are done
  void stop();
  bool done() const { return next_ == steps_.size(); }

 Q_SIGNALS:
  void finished();

 private:
  void take_one();

  std::vector<std::function<bool()>> steps_;
  std::size_t next_ = 0;
  QTimer timer_;
};

}  // namespace neuroshard::ui
