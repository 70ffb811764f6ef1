// Asks the router to make a port of this machine reachable from outside: one contract for NAT-PMP and UPnP. A
// mapping alone is no proof, because the router may stand behind another one. Only a dial-back decides.
#pragma once

#include <string_view>

#include "core/nat/io.h"

namespace neuroshard::nat {

inline constexpr std::chrono::seconds mapping_lease{3600};

struct PortMapping {
  std::uint16_t inside_port = 0;
  std::uint16_t outside_port = 0;  // the router may give another one than the wanted
  std::chrono::seconds lease{0};   // 0: until the router forgets it
};

struct MappingState {
  platform::IpAddress outside;  // the router's own outside address, by its report
  bool lost = false;            // the router forgot the mapping, or may have
};

// TCP ports. Calls wait at most some seconds.  Threads: one at a time.
class PortMapper {
 public:
  virtual ~PortMapper() = default;
  virtual std::string_view name() const = 0;  // "UPnP", "NAT-PMP"
  // Makes the mapping, or renews it. `wanted_outside`: preferred. NotFound or Timeout: there is no such
  // router; Denied: it refuses, and the message says how to allow it; Exhausted: it has no free port;
  // Unavailable: it has no public address, mostly because it stands behind another router.
  virtual Expected<PortMapping> map(const Io& io, std::uint16_t inside_port, std::uint16_t wanted_outside,
                                    std::chrono::seconds lease) = 0;
  // After map(): the router's outside address, and whether it still has the mapping.
  virtual Expected<MappingState> check(const Io& io, const PortMapping& mapping) = 0;
  virtual Expected<void> unmap(const Io& io, const PortMapping& mapping) = 0;
};

}  // namespace neuroshard::nat
