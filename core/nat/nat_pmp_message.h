// NAT-PMP messages (RFC 6886 §3): a request is 2 or 12 bytes, an answer 8, 12 or 16.
#pragma once

#include <optional>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::nat::nat_pmp {

inline constexpr std::uint16_t port = 5351;
inline constexpr std::size_t max_answer_bytes = 16;

enum class Operation : std::uint8_t { OutsideAddress = 0, MapUdp = 1, MapTcp = 2 };

struct Answer {
  Operation operation = Operation::OutsideAddress;
  std::uint16_t result = 0;                    // 0: done; 1 … 5: RFC 6886 §3.5
  std::uint32_t epoch = 0;                     // seconds since the gateway's tables were last empty
  std::optional<platform::IpAddress> outside;  // of a successful OutsideAddress
  // Of a successful mapping; lifetime 0: it was removed.
  std::uint16_t inside_port = 0, outside_port = 0;
  std::uint32_t lifetime = 0;
};

Bytes outside_address_request();
// lifetime 0 removes the mapping of the inside port.
Bytes map_request(Operation operation, std::uint16_t inside_port, std::uint16_t wanted_outside,
                  std::uint32_t lifetime);
// Corrupt: not an answer of this protocol.
Expected<Answer> parse_answer(ByteSpan bytes);
// Explains a result other than 0 to a user.
Error result_error(std::uint16_t result);

// Whether a gateway with epoch `before`, and `elapsed` later `now`, may have dropped a mapping in between. It
// lost its tables (RFC 6886 §3.6), or leases went on while this machine slept and its clock stood still. The
// clocks may differ by 1/8, and two seconds are tolerated.
bool mapping_may_be_gone(std::uint32_t before, std::uint32_t now, Duration elapsed);

}  // namespace neuroshard::nat::nat_pmp
