// Shares one thread between texts and the training: who works next, and for how long. A balance of seconds says how much
// more than its share the texts have had. It is kept only while both have work: time that nobody wanted is no credit.
//
// One client's texts would make all others wait while the training gets its share. So each client's first token may
// come early, once until the texts are next by the balance. The training gets that time back afterwards.
//
// Plain arithmetic.  Threads: one at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

  struct Turn {
    double seconds = 0;                 // 0: until the first token
    std::optional<std::string> only{};  // the client whose texts take part; none: all
  };
  // The texts' next turn; none: the training is next. waiting: clients of texts without a token, in their order.
  std::optional<Turn> next_turn(const std::vector<std::string>& waiting) {
    if (text_is_next()) {
      early_.clear();
      return Turn{turn_seconds(), {}};
    }
    if (balance_ >= most_ahead()) return std::nullopt;
    for (const std::string& client : waiting)
      if (early_.insert(client).second) return Turn{0, client};
    return std::nullopt;
  }

  bool text_is_next() const { return balance_ <= 0; }
  // The next turn of the texts, which also makes up for a long training step.
  double turn_seconds() const {
    const double behind = std::max(0.0, -balance_) / (1 - share_);
    return std::clamp(std::max(period_seconds * share_, behind), least_turn_seconds, longest_turn_seconds);
  }

 private:
  // Twice the balance after a usual turn.
  double most_ahead() const {
    return 2 * std::max(period_seconds * share_, least_turn_seconds) * (1 - share_);
  }

  std::set<std::string> early_;  // clients that have had their early token; bounded by most_ahead()
  double share_;
  double balance_ = 0;
};

}  // namespace neuroshard::engine
