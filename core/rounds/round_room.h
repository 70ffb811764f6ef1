// Whether this node's disk, by the user's limits and by itself, has room for another round.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "core/base/expected.h"
#include "core/base/log.h"

namespace neuroshard::rounds {

// Threads: the executor's of the rounds. It never waits.
class RoundRoom {
 public:
  virtual ~RoundRoom() = default;
  // Keeps room for a round of so many contributors, instead of the room kept before.
  // The error says what is used up and what to do; its text is the same as long as the reason is.
  virtual Expected<void> take(std::size_t contributors) = 0;
  // The disk itself has room for a round that goes on: somebody else may have filled it.
  virtual Expected<void> check() const = 0;
};

// Asks for a round's room until it is there, once for each round unless the disk runs full meanwhile. Threads: one.
class RoundAdmission {
 public:
  // room: null: there always is.
  RoundAdmission(RoundRoom* room, Logger& logger) : room_(room), logger_(logger) {}
  // A round begins.
  void open() { admitted_ = false; }
  // A round that has begun goes on, whatever the user's limits say by now.
  bool admits(std::size_t contributors) {
    if (room_ == nullptr || (admitted_ && room_->check().ok())) return true;
    const auto room = room_->take(contributors);
    std::string why = room.ok() ? std::string() : room.error().describe();
    if (why != why_not_ && why.empty()) logger_.info("rounds", "there is room for rounds again");
    if (why != why_not_ && !why.empty()) logger_.warning("rounds", "the rounds pause: " + why);
    why_not_ = std::move(why);
    return admitted_ = room.ok();
  }
  const std::string& why_not() const { return why_not_; }

 private:
  RoundRoom* room_;
  Logger& logger_;
  bool admitted_ = false;
  std::string why_not_;
};

}  // namespace neuroshard::rounds
