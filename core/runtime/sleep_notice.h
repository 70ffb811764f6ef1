// Announces to the other members that this node goes away before its computer suspends or shuts down, and that
// it is back afterwards. The computer waits meanwhile, as long as it allows.
//
// Threads: one, the owner's. Errors: none; what happens is in the log.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/base/log.h"
#include "core/platform/power/sleep_watch.h"
#include "core/runtime/presence.h"

namespace neuroshard::runtime {

class SleepNotice {
 public:
  // save: writes what an unexpected end would lose and what takes no time. presence, clock and logger outlive
  // the object.
  SleepNotice(std::unique_ptr<platform::SleepWatch> watch, Presence& presence, std::function<void()> save,
              const Clock& clock, Logger& logger);

  // To be called several times a second. Its end leaves the presence as it is.
  void poll();

 private:
  void prepare(const platform::SleepEvent& event);
  void come_back(const platform::SleepEvent& event);

  std::unique_ptr<platform::SleepWatch> watch_;
  Presence& presence_;
  const std::function<void()> save_;
  const Clock& clock_;
  Logger& logger_;
  // While the computer waits: whether the other members know.
  std::shared_ptr<std::atomic<bool>> announced_;
};

}  // namespace neuroshard::runtime
