// Shares one thread between texts and the training: who works next, and for how long. A balance of seconds says how much
// more than its share the texts have had. It is kept only while both have work: time that nobody wanted is no credit.
//
// Plain arithmetic.  Threads: one at a time.
#pragma once

#include <algorithm>

namespace neuroshard::engine {

class WorkShare {
 public:
  static constexpr double period_seconds = 2;  // of a turn of the texts and its share of training steps
  static constexpr double least_turn_seconds = 0.25;  // reading the windows again takes a part of a turn
  static constexpr double longest_turn_seconds = 30;

  // text_share: of the time, above 0 and below 1.
  explicit WorkShare(double text_share) : share_(text_share) {}
  void set(double text_share) { share_ = text_share; }

  void add_text(double seconds) { balance_ += seconds * (1 - share_); }
  // texts_wait: texts had work meanwhile.
  void add_training(double seconds, bool texts_wait) {
    balance_ -= seconds * share_;
    if (!texts_wait) balance_ = std::max(balance_, 0.0);
  }
  void no_text_waits() { balance_ = std::max(balance_, 0.0); }

  bool text_is_next() const { return balance_ <= 0; }
  // The next turn of the texts, which also makes up for a long training step.
  double turn_seconds() const {
    const double behind = std::max(0.0, -balance_) / (1 - share_);
    return std::clamp(std::max(period_seconds * share_, behind), least_turn_seconds, longest_turn_seconds);
  }

 private:
  double share_;
  double balance_ = 0;
};

}  // namespace neuroshard::engine
