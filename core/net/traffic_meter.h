// Counts this node's traffic with peers and keeps it within the user's limits: bytes a second up and down,
// and bytes a month. It counts bytes on the line: a message's and those that TLS, HTTP/2, TCP and IP add.
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

// Bytes on a line with packets of 1500 bytes: 52 of IP and TCP in each packet, 22 of TLS in each 16 KiB, and
// the headers of one request or answer.
std::uint64_t wire_bytes(std::uint64_t payload);

// Of the month's data that strangers together may use up, calls of theirs and relayed bytes; by the day, so that no
// day takes the share of the next ones.
inline constexpr double strangers_month_share = 0.2;

struct TrafficView {
  std::uint64_t sent = 0, received = 0;  // since the start
  std::optional<std::uint64_t> left;     // this month; nothing: no limit
};

// Threads: any, all members.
class TrafficMeter {
 public:
  // cap: of the month, may be null; it is saved at the end. All outlive the meter.
  TrafficMeter(const Clock& clock, Logger& logger, TrafficLimits limits, TrafficCap* cap);
  ~TrafficMeter();

  // In force from the next message on; a message that waits already keeps its turn. month: the cap's limit in
  // bytes, 0 = none.
  void set_limits(TrafficLimits limits, std::uint64_t month);

  // Counts a message that is to be sent, or was received. Returns how long to wait before it is sent, or
  // before the next one is asked for. A small message waits only for small ones: a vote, a ping or a look-up
  // would time out behind megabytes. Large messages wait for the small ones, so that the limit holds for all.
  // Exhausted, and nothing is counted: the month's data is used up, or the wait would be longer than
  // `longest_wait`.
  Expected<Duration> sent(std::uint64_t payload);
  // Arrived bytes can't be refused: they always count.
  Duration received(std::uint64_t payload);
  // Counts a request of another node. Nobody here asked for it, so it delays what this node asks for by at most
  // `longest_unasked`.
  void received_unasked(std::uint64_t payload);
  // Counts bytes that are relayed for others, as they are on the line except for packet headers. Returns how
  // long to wait before more is read.  Exhausted: the month's data or the strangers' share is used up; they count all
  // the same.
  Expected<Duration> relayed(std::uint64_t bytes);
  // Counts the payload of a stranger's request or of the answer to it towards the strangers' share, beside
  // sent() or received().
  void of_stranger(std::uint64_t payload);
  // Exhausted while strangers have used up their share of the month until today, or the month's data is used up.
  Expected<void> check_strangers();
  // How long the bytes received so far keep the line busy at the allowed speed. Wait for that long before
  // asking for more.
  Duration behind();
  // Exhausted while the month's data is used up; the message says when a new month begins.
  Expected<void> check();
  TrafficView view();

  static constexpr Duration longest_wait = std::chrono::seconds(60);
  static constexpr Duration longest_unasked = std::chrono::seconds(2);
  static constexpr std::uint64_t small_bytes =
      4096;  // a message up to this size does not wait for large ones

 private:
  void count(std::uint64_t bytes);
  void count_strangers(std::uint64_t bytes);
  Expected<void> check_locked();
  Expected<void> check_strangers_locked();
  const Clock& clock_;
  Logger& logger_;
  std::optional<TokenBucket> up_, down_;
  std::optional<TokenBucket> small_up_;  // of the same rate, for small messages alone
  std::mutex mutex_;
  TrafficCap* cap_;
  std::uint64_t sent_ = 0, received_ = 0;
  bool logged_ = false;  // the log has the message about the used-up month
  bool failed_ = false;  // the last write of the count failed
};

}  // namespace neuroshard::net
