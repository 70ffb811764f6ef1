#include "core/chain/restart_watch.h"

#include <utility>

namespace neuroshard::chain {

void RestartWatch::begin(MonotonicTime now) {
  state_ = State::Asking;
  is_old_ = false;
  since_ = now;
}

void RestartWatch::wait(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  state_ = State::Waiting;
  is_old_ = false;
  since_ = now;
  found_height_ = height;
  quiet_round_ = round + 1;
}

void RestartWatch::on_block(std::uint64_t height, MonotonicTime now) {
  if (state_ == State::Asking || state_ == State::Behind) {
    state_ = State::Behind;
    since_ = now;
  } else if (state_ == State::Waiting && height > found_height_) {
    state_ = State::Settled;
  }
}

void RestartWatch::on_peer(MonotonicTime now) {
  if (state_ != State::Behind) return;
  state_ = State::Comparing;
  since_ = now;
}

void RestartWatch::on_answers(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  if (state_ == State::Settled || state_ == State::Waiting) return;
  if (is_old_) return wait(height, round, now);
  state_ = State::Settled;
}

bool RestartWatch::forgot(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  if (state_ == State::Waiting || std::exchange(is_old_, true)) return false;
  if (state_ == State::Settled) wait(height, round, now);
  return true;
}

bool RestartWatch::tick(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  const bool asks = state_ == State::Asking || state_ == State::Comparing;
  if (state_ == State::Settled || now - since_ < (asks ? ask_for_ : wait_)) return false;
  const bool settles = state_ == State::Waiting || (state_ == State::Asking && !is_old_);
  if (settles)
    state_ = State::Settled;
  else
    wait(height, round, now);
  return settles;
}

}  // namespace neuroshard::chain
