// A direct connection through two NATs: TCP simultaneous open (RFC 9293 §3.5, RFC 5128 §3.4). Both sides dial
// each other's outside port from the port that made that mapping, again and again in the same seconds; each
// dial opens its own NAT for the other's. Works when both NATs map endpoint-independently; both sides need to
// learn the other's endpoint, and when to start, from somebody they both reach. The port is listened on
// meanwhile: a dial of the other side that comes between two of ours counts as well.
#pragma once

#include "core/nat/io.h"

namespace neuroshard::nat {

struct PunchPlan {
  std::uint16_t local_port = 0;                       // the port whose mapping the other side was told
  platform::Endpoint remote;                          // the other side's, as the world sees it
  MonotonicTime start{};                              // dial from then on …
  MonotonicTime deadline{};                           // … until then
  Duration attempt = std::chrono::milliseconds(700);  // a dial that takes longer is begun anew
};

// Timeout: no connection by the deadline; the NATs are not of that kind. Busy: the port can't be used.
Expected<platform::TcpSocket> punch_hole(const Io& io, const PunchPlan& plan);

}  // namespace neuroshard::nat
