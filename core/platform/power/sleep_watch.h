// Suspend and shutdown of this computer, announced before they happen. Linux: systemd-logind announces them
// on the system bus and delays them for programs that hold an inhibitor lock of the mode "delay"
// (org.freedesktop.login1(5), https://systemd.io/INHIBITOR_LOCKS). libsystemd is loaded on first use, so that
// nothing else pays for it. Elsewhere nothing is announced.
//
//   while (const auto event = watch->poll()) …   // Suspending: prepare, at most until event->deadline
//   watch->release();                            // prepared: the computer may go on
//
// A lock is held from the start, and again after each event that ends a suspend or a shutdown. It is released
// by release(), at the deadline at the latest, and by the destructor.
//
// Threads: one, the owner's, for all members. There is no thread inside, and no call waits.
// Errors: none. Without a bus or logind the log says so once, poll() returns nothing, and the watch tries
// again later; it also takes a new lock when logind starts again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/platform/file/paths.h"

namespace neuroshard::platform {

enum class SleepEventKind : std::uint8_t { Suspending, Resumed, ShuttingDown, ShutdownCancelled };

struct SleepEvent {
  SleepEventKind kind = SleepEventKind::Resumed;
  // Suspending and ShuttingDown: the lock is released then. It stays below logind's own limit
  // (InhibitDelayMaxSec, 5 s by default).
  MonotonicTime deadline{};
};

class SleepWatch {
 public:
  virtual ~SleepWatch() = default;
  // Handles what the bus has sent, and returns the oldest event that was not returned yet. To be called
  // several times a second.
  virtual std::optional<SleepEvent> poll() = 0;
  // The program is prepared for the suspend or shutdown that was announced last. Without one it does nothing.
  virtual void release() = 0;
};

// The address of the system bus: $DBUS_SYSTEM_BUS_ADDRESS, else the usual one.
std::string system_bus_address(const Environment& environment);

struct SleepWatchOptions {
  std::string bus_address;
  // Shown by `systemd-inhibit --list`: a program, and what it does before the computer goes on.
  std::string program, reason;
  Duration retry = std::chrono::seconds(30);  // until the next try to reach the bus
};

// The clock is the system's monotonic one. clock and logger outlive the watch.
std::unique_ptr<SleepWatch> make_sleep_watch(SleepWatchOptions options, const Clock& clock, Logger& logger);

}  // namespace neuroshard::platform
