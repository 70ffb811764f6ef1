// The part of multicast DNS (RFC 6762) and its service discovery (RFC 6763) that nodes of one local network
// need: the question for _neuroshard._tcp.local and the answer with a node's port and network. Other programs
// see ours as an ordinary service, and ours reads answers that others wrote as the RFCs allow (names
// compressed, records in any order and section, records of other kinds among them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::rendezvous {

inline constexpr std::size_t max_mdns_bytes = 1440;   // of ours, in one datagram
inline constexpr std::size_t max_mdns_services = 16;  // of one datagram that are looked at

// A node of the local network.
struct MdnsService {
  std::string instance;  // label, 1 … 63 bytes: the first 16 digits of the node's id
  Hash256 network_id{};
  std::uint16_t port = 0;
  platform::IpAddress address{};  // IPv4; of others: not read, what counts is where the datagram came from
};

struct MdnsMessage {
  bool question = false;              // for our service
  std::vector<MdnsService> services;  // of an answer; those with port and network only
};

Bytes encode_mdns_question();
// ttl: seconds; 0 = it goes away (RFC 6762 §10.1).
Bytes encode_mdns_answer(const MdnsService& service, std::uint32_t ttl);
// Any bytes are safe. Corrupt: no DNS message. One about other services has neither question nor services.
Expected<MdnsMessage> decode_mdns(ByteSpan bytes);

}  // namespace neuroshard::rendezvous
