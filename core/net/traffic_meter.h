// What this node's peers cost the user's line, held to what the user allows: bytes a second up and down, and
// bytes a month. Counted is what travels: the bytes of a message and what TLS, HTTP/2, TCP and IP add to it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/net/token_bucket.h"
#include "core/net/traffic_cap.h"

namespace neuroshard::net {

struct TrafficLimits {
  std::uint64_t up = 0, down = 0;  // bytes a second; 0 = no limit
};

// On a line with packets of 1500 bytes: 52 bytes of IP and TCP in each, 22 of TLS in each 16 KiB, and the
// headers of one request or answer.
std::uint64_t wire_bytes(std::uint64_t payload);

struct TrafficView {
  std::uint64_t sent = 0, received = 0;  // since the start
  std::optional<std::uint64_t> left;     // this month; nothing: no limit
};

// Threads: any, all members.
class TrafficMeter {
 public:
  // cap: of the month, may be null; saved at the end. All outlive the meter.
  TrafficMeter(const Clock& clock, Logger& logger, TrafficLimits limits, TrafficCap* cap);
  ~TrafficMeter();

  // Counts a message that is to be sent, or was received, and says how long to wait before it is sent, or
  // before the next one is asked for. A small one waits for small ones only: votes, pings and look-ups would
  // else stand behind megabytes until nobody waits for them any more. What they take the large ones wait for,
  // so that the limit holds for all.  Exhausted, and nothing is counted: the month's data is used up, or what
  // waits already needs longer than `longest_wait`.
  Expected<Duration> sent(std::uint64_t payload);
  // Of what has come nothing can be refused any more: it is counted in any case.
  Duration received(std::uint64_t payload);
  // Bytes that came in and go out again for others, as they are on the line but for what packets add: how
  // long to wait before more is read.  Exhausted: the month's data is used up; they are counted all the same.
  Expected<Duration> relayed(std::uint64_t bytes);
  // How long what was received so far keeps the line busy at the allowed speed: who asks for more waits for
  // it.
  Duration behind();
  // Exhausted while the month's data is used up: the message says when a new month begins.
  Expected<void> check();
  TrafficView view();

  static constexpr Duration longest_wait = std::chrono::seconds(60);
  static constexpr std::uint64_t small_bytes = 4096;  // of a message that does not wait for large ones

 private:
  void count(std::uint64_t bytes);
  Expected<void> check_locked();
  const Clock& clock_;
  Logger& logger_;
  std::optional<TokenBucket> up_, down_;
  std::optional<TokenBucket> small_up_;  // of the same rate, for small messages alone
  std::mutex mutex_;
  TrafficCap* cap_;
  std::uint64_t sent_ = 0, received_ = 0;
  bool told_ = false;    // that the month is used up
  bool failed_ = false;  // to write the count
};

}  // namespace neuroshard::net
