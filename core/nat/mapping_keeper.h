// Keeps one port mapping alive: renews it at half its lease (of one without an end: at half of mapping_lease),
// makes it again when the router restarted, lost it or has another outside address, removes it at the end, and
// reports changes of that address. One unanswered question is no loss.
// Owns no thread: its owner calls step() at next().
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/nat/port_mapper.h"

namespace neuroshard::nat {

struct MappingEvent {
  enum class Kind { Mapped, AddressChanged, Lost, Failed } kind = Kind::Mapped;
  platform::Endpoint outside;  // Mapped, AddressChanged: the new one; Lost: the former one
  std::string words;           // for logs and users
  // Of Failed, and of Lost unless the router forgot. Its code is one of PortMapper::map().
  std::optional<Error> failure{};
};

struct KeeperTimes {
  Duration check = std::chrono::seconds(60);  // between two checks that the router still has the mapping
  Duration first_retry = std::chrono::seconds(15);  // after a failure; doubles
  Duration last_retry = std::chrono::minutes(15);
};

// Threads: one.
class MappingKeeper {
 public:
  // `mapper` must outlive the keeper. The first step() makes the mapping.
  MappingKeeper(PortMapper& mapper, std::uint16_t inside_port, std::uint16_t wanted_outside,
                MonotonicTime now, const KeeperTimes& times = {})
      : mapper_(mapper),
        inside_port_(inside_port),
        wanted_outside_(wanted_outside),
        times_(times),
        next_(now),
        retry_(times.first_retry) {}

  // When step() has work.
  MonotonicTime next() const { return next_; }
  // Has the next step() ask the router.
  void check_now(MonotonicTime now) { next_ = std::min(next_, now); }
  // In a row, until now. Exhausted counts only while there is no endpoint.
  int failures() const { return failures_; }
  // Does the work that is due and returns its events. Blocks on the router as PortMapper's calls do.
  std::vector<MappingEvent> step(const Io& io);
  // The outside endpoint that the router has opened, by its own report. It survives most_kept_failures in a
  // row, and any number of Exhausted, which is no news of the mapping; but not the lease.
  std::optional<platform::Endpoint> outside() const { return outside_; }
  // Removes the mapping, if there is one.
  Expected<void> release(const Io& io);

  static constexpr int most_kept_failures = 2;

 private:
  void make(const Io& io, std::vector<MappingEvent>& events);
  void check(const Io& io, std::vector<MappingEvent>& events);
  void failed(const Io& io, const Error& error, std::vector<MappingEvent>& events);
  void settle(const platform::IpAddress& ip, std::vector<MappingEvent>& events);
  void plan(MonotonicTime now);

  PortMapper& mapper_;
  std::uint16_t inside_port_, wanted_outside_;
  KeeperTimes times_;
  MonotonicTime next_;
  std::optional<PortMapping> mapping_;
  std::optional<platform::Endpoint> outside_;
  MonotonicTime renew_{}, lease_end_{};
  Duration retry_;
  int failures_ = 0;
};

}  // namespace neuroshard::nat
