#include "core/chain/restart_watch.h"

namespace neuroshard::chain {

void RestartWatch::begin(MonotonicTime now) {
  state_ = State::Asking;
  since_ = now;
}

void RestartWatch::wait(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  state_ = State::Waiting;
  since_ = now;
  found_height_ = height;
  quiet_round_ = round + 1;
}

void RestartWatch::on_block(std::uint64_t height, std::uint64_t /*round*/, MonotonicTime now) {
  if (state_ == State::Asking || state_ == State::Behind) {
    state_ = State::Behind;
    since_ = now;
  } else if (state_ == State::Waiting && height > found_height_) {
    state_ = State::Settled;
  }
}

void RestartWatch::on_peer(std::uint64_t its_height, std::uint64_t height, std::uint64_t round, bool enough,
                           MonotonicTime now) {
  if (its_height > height) return;
  if (state_ == State::Asking && enough) state_ = State::Settled;
  if (state_ == State::Behind) wait(height, round, now);
}

void RestartWatch::forgot(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  if (state_ == State::Asking || state_ == State::Settled) wait(height, round, now);
}

bool RestartWatch::tick(std::uint64_t height, std::uint64_t round, MonotonicTime now) {
  if (state_ == State::Behind && now - since_ >= wait_) wait(height, round, now);
  const bool over = (state_ == State::Asking && now - since_ >= ask_for_) ||
                    (state_ == State::Waiting && now - since_ >= wait_);
  if (!over) return false;
  state_ = State::Settled;
  return true;
}

}  // namespace neuroshard::chain
