// A direct connection through two NATs: TCP simultaneous open (RFC 9293 §3.5, RFC 5128 §3.4). Both sides dial
// each other's outside port from the local port of that mapping, repeatedly and at the same time. Each dial
// opens the own NAT for the other side's dials. It works if both NATs map endpoint-independently. A node that
// both sides reach must tell each side the other's endpoint and when to start. The port also listens: a dial
// of the other side that arrives between two of ours counts, too.
#pragma once

#include "core/nat/io.h"

namespace neuroshard::nat {

// Of one punch. The other side may be a victim that an attacker names, so it gets few. The pauses between them
// grow, so that they last as long as two nodes need to find each other.
inline constexpr int dials_of_punch = 12;

struct PunchPlan {
  std::uint16_t local_port = 0;                       // the port whose mapping the other side dials
  platform::Endpoint remote;                          // the other side's outside endpoint
  MonotonicTime start{};                              // dial from then on …
  MonotonicTime deadline{};                           // … until then
  Duration attempt = std::chrono::milliseconds(700);  // a dial that takes longer is repeated
  int dials = dials_of_punch;
};

// Timeout: no connection by the deadline; the NATs do not allow it. Busy: the port can't be used.
Expected<platform::TcpSocket> punch_hole(const Io& io, const PunchPlan& plan);

}  // namespace neuroshard::nat
