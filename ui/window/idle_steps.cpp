#include "ui/window/idle_steps.h"

namespace neuroshard::ui {

IdleSteps::IdleSteps(std::vector<std::function<bool()>> steps, QObject* parent)
    : QObject(parent), steps_(std::move(steps)) {
  connect(&timer_, &QTimer::timeout, this, &IdleSteps::take_one);
}

void IdleSteps::start() {
  if (!done()) timer_.start(delay);
}

void IdleSteps::stop() {
  timer_.stop();
}

void IdleSteps::take_one() {
  timer_.setInterval(pause);
  if (steps_[next_]()) return;
  if (++next_ < steps_.size()) return;
  timer_.stop();
  steps_.clear();
  next_ = 0;
  Q_EMIT finished();
}

}  // namespace neuroshard::ui
