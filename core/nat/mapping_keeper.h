// Keeps one port mapping alive: renewed at half its lease, made anew when the router restarted or forgot it,
// removed at the end; tells when the outside address changes. It owns no thread: its owner calls step() when
// next() has come.
#pragma once

#include <optional>
#include <vector>

#include "core/nat/port_mapper.h"

namespace neuroshard::nat {

struct MappingEvent {
  enum class Kind { Mapped, AddressChanged, Lost, Failed } kind = Kind::Mapped;
  platform::Endpoint outside;  // Mapped, AddressChanged: the new one; Lost: the former one
  std::string words;           // for logs and people
};

struct KeeperTimes {
  Duration check = std::chrono::seconds(60);        // how soon a restart of the router is noticed
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

  // When step() has something to do.
  MonotonicTime next() const { return next_; }
  // Does what is due and says what happened. Waits for the router as PortMapper's calls do.
  std::vector<MappingEvent> step(const Io& io);
  // The port is open here, as the router says.
  std::optional<platform::Endpoint> outside() const { return outside_; }
  // Removes the mapping, if there is one.
  Expected<void> release(const Io& io);

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
  MonotonicTime renew_{};
  Duration retry_;
};

}  // namespace neuroshard::nat
